#include "weft/data/parallel_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/text_stream.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

/// The column `number`, from 1, of a line; false if there are not so many.
bool column(std::string_view line, Index number, std::string_view& text) {
  for (Index i = 1; i < number; ++i) {
    const std::size_t tab = line.find('\t');
    if (tab == line.npos) return false;
    line.remove_prefix(tab + 1);
  }
  text = line.substr(0, line.find('\t'));
  return true;
}

/// Reads on to the end of the longer file. Blank lines are a surplus that does no harm; others are refused with both
/// counts.
void require_blank_rest(PairReader& reader, PairReader::Found found) {
  const bool source_longer = found == PairReader::Found::kSourceAlone;
  const Index common = reader.line() - 1;
  bool blank = true;
  Index lines = common;
  for (; found != PairReader::Found::kNothing; found = reader.next()) {
    ++lines;
    blank = blank && is_blank(source_longer ? reader.source() : reader.target());
  }
  if (blank) return;
  const TextFiles& files = reader.files();
  throw DataError(fmt::format("{} has {} lines but {} has {}; line n of one file must translate line n of the other",
                              files.source, source_longer ? lines : common, files.target,
                              source_longer ? common : lines));
}

void require_text(const TextFiles& files, bool source, bool target, Index pairs) {
  if (!files.tsv.empty() && pairs == 0) {
    throw DataError(fmt::format("{}: no line has {} columns parted by TAB; check the file and its columns", files.tsv,
                                std::max(files.source_column, files.target_column)));
  }
  for (const bool side : {true, false}) {
    if (side ? source : target) continue;
    if (files.tsv.empty()) {
      throw DataError(
          fmt::format("{}: has no text; give a file with one sentence a line", side ? files.source : files.target));
    }
    throw DataError(fmt::format("{}: column {} has no text; check the columns", files.tsv,
                                side ? files.source_column : files.target_column));
  }
}

/// Does what the public function of this name says, but for the memory; `reading` is set to what is being read.
ShortLines read_blocks(std::span<const TextFiles> texts, FunctionRef<void(const ParallelText& block)> take,
                       const TextFiles*& reading) {
  using Found = PairReader::Found;
  ShortLines short_lines;
  ParallelText block;
  std::size_t bytes = 0;  // of text in it
  const auto hand_out = [&] {
    take(block);
    block.source.clear();
    block.target.clear();
    bytes = 0;
  };
  for (const TextFiles& files : texts) {
    reading = &files;
    PairReader reader(files);
    bool source = false, target = false;  // whether there is any text
    Index pairs = 0;
    for (Found found = reader.next(); found != Found::kNothing; found = reader.next()) {
      if (found == Found::kSourceAlone || found == Found::kTargetAlone) {
        require_blank_rest(reader, found);
        break;
      }
      if (const std::string problem = reader.problem(); !problem.empty()) throw DataError(problem);
      if (found == Found::kTooFewColumns) {
        if (short_lines.count++ == 0) short_lines.first = fmt::format("{}:{}", files.tsv, reader.line());
        continue;
      }
      ++pairs;
      source = source || !is_blank(reader.source());
      target = target || !is_blank(reader.target());
      block.source.emplace_back(reader.source());
      block.target.emplace_back(reader.target());
      bytes += reader.source().size() + reader.target().size();
      if (static_cast<Index>(block.source.size()) == kBlockPairs || bytes >= kBlockBytes) hand_out();
    }
    require_text(files, source, target, pairs);
  }
  if (!block.source.empty()) hand_out();
  return short_lines;
}

}  // namespace

PairReader::PairReader(const TextFiles& files) : files_(files) {
  for (const std::string& name : files_.names()) {
    auto stream = open_text(name);
    std::istream& in = *stream;
    open_.push_back({name, std::move(stream), LineReader(in, name), "", true});
  }
}

PairReader::Found PairReader::next() {
  source_ = target_ = {};
  for (File& file : open_) {
    if (file.more) file.more = file.reader.next(file.line);
  }
  const bool first = open_.front().more, last = open_.back().more;
  if (!first && !last) return Found::kNothing;
  ++line_;
  if (files_.tsv.empty()) {
    if (first) source_ = open_[0].line;
    if (last) target_ = open_[1].line;
    return first && last ? Found::kPair : first ? Found::kSourceAlone : Found::kTargetAlone;
  }
  const std::string& line = open_[0].line;
  const bool both = column(line, files_.source_column, source_) && column(line, files_.target_column, target_);
  return both ? Found::kPair : Found::kTooFewColumns;
}

Index PairReader::columns() const {
  const std::string& line = open_.front().line;
  return files_.tsv.empty() ? 1 : 1 + std::count(line.begin(), line.end(), '\t');
}

std::string PairReader::problem() const {
  for (const File& file : open_) {
    if (!file.more) continue;
    if (const auto problem = text_problem(file.line)) {
      return fmt::format("{}:{}:{}: {}", file.name, line_, problem->column, problem->what);
    }
  }
  return "";
}

ShortLines read_blocks(std::span<const TextFiles> texts, FunctionRef<void(const ParallelText& block)> take) {
  const TextFiles* reading = nullptr;
  try {
    return read_blocks(texts, take, reading);
  } catch (const std::bad_alloc&) {
    if (reading == nullptr) throw;
    throw too_large_text(fmt::format("{}", fmt::join(reading->names(), ", ")));
  }
}

}  // namespace weft

#include "weft/train/checked_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "weft/core/error.h"
#include "weft/data/parallel_reader.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

/// Throws DataError for a pipe or a device, which gives its text but once.
void require_read_again(const std::string& name) {
  std::error_code error;
  if (!std::filesystem::is_other(name, error)) return;
  throw DataError(
      fmt::format("{}: is not a regular file, but the check reads its text more than once; copy it to one", name));
}

}  // namespace

std::vector<std::string> CheckedText::scan(Findings& findings) {
  for (const TextFiles& files : files_) {
    for (const std::string& name : files.names()) require_read_again(name);
  }
  std::vector<std::string> names;
  std::map<std::string, bool> readable;  // of each file, which may be in several texts
  for (const TextFiles& files : files_) {
    bool usable = true;
    for (const std::string& name : files.names()) {
      const auto [file, is_new] = readable.emplace(name, true);
      if (is_new) {
        names.push_back(name);
        file->second = check_file(name, findings).has_value();
      }
      usable = usable && file->second;
    }
    first_.push_back(lines_);
    usable_.push_back(usable);
    if (usable) scan_pairs(files, findings);
  }
  if (files_.empty()) lines_ = static_cast<Index>(text_.source.size());
  return names;
}

/// Notes what the lines of the files are to each other; goes on where training stops.
void CheckedText::scan_pairs(const TextFiles& files, Findings& findings) {
  using Found = PairReader::Found;
  PairReader reader(files);
  Index source_lines = 0, target_lines = 0;
  bool source = false, target = false, surplus_text = false;
  for (Found found = reader.next(); found != Found::kNothing; found = reader.next()) {
    source_lines += found != Found::kTargetAlone;
    target_lines += found != Found::kSourceAlone;
    if (found == Found::kPair) {
      ++lines_;
      source = source || !is_blank(reader.source());
      target = target || !is_blank(reader.target());
      if (!files.tsv.empty() && reader.columns() > std::max(files.source_column, files.target_column)) {
        findings.add(Oddity::kSurplusColumns, files.tsv, reader.line());
      }
    } else if (found == Found::kTooFewColumns) {
      findings.add(Oddity::kTooFewColumns, files.tsv, reader.line());
      not_pairs_.push_back(lines_++);
    } else {
      surplus_text = surplus_text || !is_blank(reader.source()) || !is_blank(reader.target());
    }
  }
  const std::string& longer = source_lines > target_lines ? files.source : files.target;
  const Index common = std::min(source_lines, target_lines);
  if (surplus_text) {
    findings.add(Oddity::kUnequalLines, longer, common + 1, 0,
                 fmt::format("{} has {} lines, {} has {}", files.source, source_lines, files.target, target_lines));
  } else {
    for (Index line = common; line < std::max(source_lines, target_lines); ++line) {
      findings.add(Oddity::kSurplusBlankLines, longer, line + 1);
    }
  }
  if (!source) findings.add(Oddity::kNoText, files.names().front(), 0, 0, "source side");
  if (!target) findings.add(Oddity::kNoText, files.names().back(), 0, 0, "target side");
}

void CheckedText::read(FunctionRef<void(const ParallelText& block, Index first)> take) const {
  if (files_.empty()) return take(text_, 0);
  ParallelText block;
  Index first = 0;
  std::size_t bytes = 0;  // of text in the block
  const auto hand_out = [&] {
    take(block, first);
    first += static_cast<Index>(block.source.size());
    block = {};
    bytes = 0;
  };
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!usable_[i]) continue;
    PairReader reader(files_[i]);
    const Index end = i + 1 < first_.size() ? first_[i + 1] : lines_;
    for (Index line = first_[i]; line < end; ++line) {
      const bool pair = reader.next() == PairReader::Found::kPair;
      Index replaced = 0;
      block.source.push_back(pair ? replace_invalid_text(reader.source(), replaced) : "");
      block.target.push_back(pair ? replace_invalid_text(reader.target(), replaced) : "");
      bytes += block.source.back().size() + block.target.back().size();
      if (static_cast<Index>(block.source.size()) == kBlockPairs || bytes >= kBlockBytes) hand_out();
    }
  }
  if (!block.source.empty()) hand_out();
}

bool CheckedText::is_pair(Index line) const { return !std::binary_search(not_pairs_.begin(), not_pairs_.end(), line); }

std::pair<std::string, Index> CheckedText::place(Index line, bool target) const {
  if (files_.empty()) return {split_, line + 1};
  const auto after = std::upper_bound(first_.begin(), first_.end(), line);
  const auto i = static_cast<std::size_t>(after - first_.begin()) - 1;
  return {files_[i].names()[target && files_[i].tsv.empty() ? 1 : 0], line - first_[i] + 1};
}

void CheckedText::note(Oddity oddity, Index line, Findings& findings, bool target, std::string_view note) const {
  const auto [file, number] = place(line, target);
  findings.add(oddity, file, number, 0, note);
}

}  // namespace weft

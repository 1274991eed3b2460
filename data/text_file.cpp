#include "weft/data/text_file.h"

#include <fmt/format.h>

#include <array>
#include <istream>
#include <new>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/text_stream.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The length of the code point at `at`, or 0 if it may not be in a text.
std::size_t valid_length(std::string_view line, std::size_t at) {
  const CodePoint point = code_point_at(line, at);
  return point.value == 0 || point.value == kInvalidCodePoint ? 0 : point.length;
}

// Like std::getline, but throws where a line has more than kMostLineBytes.
bool read_line(std::istream& in, std::string& line, const std::string& name, Index number) {
  line.clear();
  std::array<char, 4096> part;
  while (true) {
    in.getline(part.data(), static_cast<std::streamsize>(part.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    const bool ended = in.good();  // by a line feed, which counts
    line.append(part.data(), ended ? count - 1 : count);
    if (line.size() > kMostLineBytes) {
      throw DataError(fmt::format("{}:{}: a line of more than {} MiB; is this a text with one sentence a line?", name,
                                  number, kMostLineBytes >> 20));
    }
    if (ended) return true;
    if (in.bad() || in.eof()) return !in.bad() && !line.empty();
    in.clear();  // the part was full
  }
}

// Drops blank lines from the end while there are more than `count` lines.
void drop_surplus_blanks(std::vector<std::string>& lines, std::size_t count) {
  while (lines.size() > count && is_blank(lines.back())) lines.pop_back();
}

}  // namespace

LineReader::LineReader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

bool LineReader::next(std::string& line) {
  if (!read_line(in_, line, name_, line_number_ + 1)) {
    if (in_.bad()) throw DataError(fmt::format("{}:{}: reading failed after this line", name_, line_number_));
    return false;
  }
  ++line_number_;
  byte_order_mark_ = false;
  if (line_number_ == 1) {
    if (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF")) {
      throw DataError(
          fmt::format("{}: this is UTF-16; convert the file, for example with iconv -f utf-16 -t utf-8", name_));
    }
    byte_order_mark_ = line.starts_with(kByteOrderMark);
    if (byte_order_mark_) line.erase(0, kByteOrderMark.size());
  }
  carriage_return_ = !line.empty() && line.back() == '\r';
  if (carriage_return_) line.pop_back();
  return true;
}

std::optional<TextProblem> text_problem(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = valid_length(line, at);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(line[at]);
      return TextProblem{static_cast<Index>(at) + 1,
                         byte == 0 ? "NUL byte; remove it, or convert the file to UTF-8 if it is UTF-16"
                                   : fmt::format("not UTF-8 (byte 0x{:02X}); convert the file, for example with "
                                                 "iconv -f latin1 -t utf-8",
                                                 byte)};
    }
    at += length;
  }
  return std::nullopt;
}

std::string replace_invalid_text(std::string_view line, Index& count) {
  std::string result;
  result.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = valid_length(line, at);
    if (length == 0) {
      result += kReplacement;
      ++count;
      ++at;
    } else {
      result += line.substr(at, length);
      at += length;
    }
  }
  return result;
}

DataError too_large_text(const std::string& name) {
  return DataError(
      fmt::format("{}: this text is too large for the memory that is free; give a smaller one, or a part of it", name));
}

std::vector<std::string> read_lines(const std::filesystem::path& path) try {
  const std::string name = path.string();
  const auto in = open_text(path);
  LineReader reader(*in, name);
  std::vector<std::string> lines;
  std::string line;
  while (reader.next(line)) {
    if (const auto problem = text_problem(line)) {
      throw DataError(fmt::format("{}:{}:{}: {}", name, reader.line_number(), problem->column, problem->what));
    }
    lines.push_back(line);
  }
  return lines;
} catch (const std::bad_alloc&) {  // the lines are given back by now, so there is memory to say so
  throw too_large_text(path.string());
}

ParallelText read_parallel(const std::filesystem::path& source, const std::filesystem::path& target) {
  return read_parallel(read_lines(source), source, target);
}

ParallelText read_parallel(std::vector<std::string> lines, const std::filesystem::path& source,
                           const std::filesystem::path& target) {
  ParallelText text{std::move(lines), read_lines(target)};
  const std::size_t source_lines = text.source.size(), target_lines = text.target.size();
  drop_surplus_blanks(text.source, target_lines);
  drop_surplus_blanks(text.target, source_lines);
  if (text.source.size() != text.target.size()) {
    throw DataError(fmt::format("{} has {} lines but {} has {}; line n of one file must translate line n of the other",
                                source.string(), source_lines, target.string(), target_lines));
  }
  return text;
}

}  // namespace weft

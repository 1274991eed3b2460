// Text files as lines of valid UTF-8. A line never holds a line feed, a NUL, or a byte that is not UTF-8, and
// the lines of a file are those that `wc -l` counts, plus a last one that has no newline. Unicode's other
// line breaks and quotes mean nothing here.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/types.h"
#include "weft/data/parallel_text.h"

namespace weft {

/// The longest line of any text, in bytes; about six novels. It keeps a file without line ends, which may unpack to a
/// thousand times its size, from filling the memory.
inline constexpr std::size_t kMostLineBytes = std::size_t{4} << 20;

/// Reads a stream line by line; drops one leading byte order mark and the CR of CR LF.
/// Whether a line is UTF-8 is not checked here: see text_problem and replace_invalid_text.
class LineReader {
 public:
  /// Reads from `in`, which must outlive the reader; `name` is what errors call it.
  LineReader(std::istream& in, std::string name);

  /// Reads the next line; returns false at the end of the stream.
  /// Throws DataError if the stream is UTF-16 or fails, or if the line is longer than kMostLineBytes.
  bool next(std::string& line);

  /// The number of the line that next read last, from 1.
  Index line_number() const { return line_number_; }
  /// Whether a byte order mark stood before that line, or a CR at its end.
  bool byte_order_mark() const { return byte_order_mark_; }
  bool carriage_return() const { return carriage_return_; }

 private:
  std::istream& in_;
  std::string name_;
  Index line_number_ = 0;
  bool byte_order_mark_ = false;
  bool carriage_return_ = false;
};

/// What is wrong with a line, and at which byte, from 1.
struct TextProblem {
  Index column;
  std::string what;
};

/// Finds the first NUL or byte that is not UTF-8 (cut, overlong, surrogate or above U+10FFFF) in a line.
std::optional<TextProblem> text_problem(std::string_view line);

/// Replaces each NUL and each byte that is not UTF-8 by U+FFFD, and adds their number to `count`.
std::string replace_invalid_text(std::string_view line, Index& count);

/// The error of a text for whose lines there is no memory; of a gzipped one the file itself may be small.
DataError too_large_text(const std::string& name);

/// Reads all lines of a file, gzipped or not (see open_text); an empty file has none.
/// Throws DataError if it cannot be read, is UTF-16, holds a NUL or anything but UTF-8 (with line and byte), or if its
/// lines are too many for the memory.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Reads two files as sentence pairs, line by line. Blank lines at the end of one file that the other lacks
/// are left out; blank lines elsewhere stay, so that pairs never shift. Throws DataError as read_lines does,
/// or if the line counts differ.
ParallelText read_parallel(const std::filesystem::path& source, const std::filesystem::path& target);

/// The same for lines that were read from `source` before, which may be a pipe.
ParallelText read_parallel(std::vector<std::string> lines, const std::filesystem::path& source,
                           const std::filesystem::path& target);

}  // namespace weft

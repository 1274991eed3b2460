// Lines of a file or of standard input, as they come: what is at hand is taken together, and nothing waits for more.
#pragma once

#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "weft/data/text_file.h"

namespace weft {

/// An input of lines.
class LineInput {
 public:
  /// Opens a file, or standard input for an empty path. Throws DataError if it cannot be read.
  explicit LineInput(const std::string& path);
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;
  ~LineInput();

  /// Waits for a line, and takes with it what else is at hand, up to `most` lines. Empty at the end. Throws DataError as
  /// LineReader does.
  std::vector<std::string> next_lines(std::size_t most);

  /// What errors call it.
  const std::string& name() const { return name_; }

 private:
  class Buffer;

  std::string name_;
  int file_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::istream> stream_;
  std::unique_ptr<LineReader> lines_;
};

}  // namespace weft

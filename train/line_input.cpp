#include "weft/train/line_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <streambuf>
#include <string_view>

#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/data/open_input.h"

namespace weft {

/// A stream buffer over a file descriptor that can tell whether a line is at hand without waiting.
class LineInput::Buffer : public std::streambuf {
 public:
  Buffer(int file, const std::string& name) : file_(file), name_(name) { setg(begin(), begin(), begin()); }

  /// Whether the next line can be taken without waiting; reads what is at hand to find its end.
  bool has_line() {
    while (std::find(gptr(), egptr(), '\n') == egptr()) {
      pollfd descriptor{file_, POLLIN, 0};
      if (egptr() - gptr() == static_cast<std::ptrdiff_t>(buffer_.size()) || ::poll(&descriptor, 1, 0) <= 0)
        return false;
      if (!fill()) return gptr() != egptr();
    }
    return true;
  }

  /// Whether what is next is these bytes; waits for them only as long as it may be.
  bool begins_with(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (gptr() + i == egptr() && !fill()) return false;
      if (gptr()[i] != bytes[i]) return false;
    }
    return true;
  }

 protected:
  int_type underflow() override { return fill() ? traits_type::to_int_type(*gptr()) : traits_type::eof(); }

 private:
  char* begin() { return buffer_.data(); }

  /// Reads more behind what is left; returns false at the end of the file.
  bool fill() {
    const auto left = static_cast<std::size_t>(egptr() - gptr());
    std::memmove(begin(), gptr(), left);
    const ssize_t count = uninterrupted([&] { return ::read(file_, begin() + left, buffer_.size() - left); });
    setg(begin(), begin(), begin() + left + std::max<ssize_t>(count, 0));
    if (count < 0) throw DataError(fmt::format("{}: cannot be read ({})", name_, std::strerror(errno)));
    return count > 0;
  }

  int file_;
  const std::string& name_;
  std::array<char, 1 << 16> buffer_;
};

LineInput::LineInput(const std::string& path)
    : name_(path.empty() ? "standard input" : path), file_(path.empty() ? STDIN_FILENO : open_input(path)) {
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0 || S_ISDIR(status.st_mode)) {
    const int error = file_ < 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : errno;
    if (file_ > STDIN_FILENO) ::close(file_);
    if (const std::string lost = error == ENOENT ? lost_link(path) : ""; !lost.empty()) {
      throw DataError(fmt::format("{}: {}", name_, lost));
    }
    throw DataError(fmt::format("{}: cannot be read ({}); check the path", name_, std::strerror(error)));
  }
  buffer_ = std::make_unique<Buffer>(file_, name_);
  stream_ = std::make_unique<std::istream>(buffer_.get());
  stream_->exceptions(std::ios::badbit);  // lets through what the buffer throws
  lines_ = std::make_unique<LineReader>(*stream_, name_);
}

LineInput::~LineInput() {
  if (file_ != STDIN_FILENO) ::close(file_);
}

std::vector<std::string> LineInput::next_lines(std::size_t most) {
  std::vector<std::string> lines;
  std::string line;
  constexpr std::string_view kGzip = "\x1F\x8B";  // which is not UTF-8
  if (lines_->line_number() == 0 && stream_->peek() == kGzip[0] && buffer_->begins_with(kGzip)) {
    throw DataError(fmt::format("{}: is gzipped; unpack it on the way: gzip -dc FILE | weft ...", name_));
  }
  while (lines.size() < most && (lines.empty() || buffer_->has_line()) && lines_->next(line)) lines.push_back(line);
  return lines;
}

}  // namespace weft

#include "weft/data/text_stream.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/data/open_input.h"

namespace weft {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

/// The bytes of a file descriptor, which it closes.
class FileBuffer : public std::streambuf {
 public:
  FileBuffer(int file, std::string name) : file_(file), name_(std::move(name)), bytes_(kBufferBytes) {}
  FileBuffer(const FileBuffer&) = delete;
  FileBuffer& operator=(const FileBuffer&) = delete;
  ~FileBuffer() override { ::close(file_); }

 protected:
  int_type underflow() override {
    char* const begin = bytes_.data() + 1;
    if (gptr() != nullptr) bytes_[0] = gptr()[-1];  // the last byte can be put back
    const ssize_t count = uninterrupted([&] { return ::read(file_, begin, bytes_.size() - 1); });
    if (count < 0) throw DataError(fmt::format("{}: cannot be read ({}); check the disk", name_, std::strerror(errno)));
    if (count == 0) return traits_type::eof();
    setg(gptr() == nullptr ? begin : bytes_.data(), begin, begin + count);
    return traits_type::to_int_type(*gptr());
  }

 private:
  int file_;
  std::string name_;
  std::vector<char> bytes_;
};

/// Unpacks gzip members one after another.
class GzipBuffer : public std::streambuf {
 public:
  GzipBuffer(std::unique_ptr<std::istream> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), packed_(kBufferBytes), plain_(kBufferBytes) {
    constexpr int kGzip = 15 + 16;  // the largest window; gzip's header and checksum
    if (inflateInit2(&zlib_, kGzip) != Z_OK) throw Error(name_ + ": zlib cannot begin to unpack");
  }
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;
  ~GzipBuffer() override { inflateEnd(&zlib_); }

 protected:
  int_type underflow() override {
    while (true) {
      if (zlib_.avail_in == 0 && !refill()) {
        if (inside_ || !any_) fail("ends too early");
        return traits_type::eof();
      }
      if (!inside_ && !begin_member()) continue;
      zlib_.next_out = reinterpret_cast<Bytef*>(plain_.data());
      zlib_.avail_out = static_cast<uInt>(plain_.size());
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        inside_ = false;
        any_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail(zlib_.msg != nullptr ? zlib_.msg : "cannot be unpacked");
      }
      const std::size_t count = plain_.size() - zlib_.avail_out;
      if (count == 0) continue;
      setg(plain_.data(), plain_.data(), plain_.data() + count);
      return traits_type::to_int_type(*gptr());
    }
  }

 private:
  bool refill() {
    file_->read(packed_.data(), static_cast<std::streamsize>(packed_.size()));
    zlib_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    zlib_.avail_in = static_cast<uInt>(file_->gcount());
    return zlib_.avail_in > 0;
  }

  /// Zeros after the last member are padding, as tapes leave it; anything else begins a member.
  bool begin_member() {
    while (any_ && zlib_.avail_in > 0 && *zlib_.next_in == 0) {
      ++zlib_.next_in;
      --zlib_.avail_in;
      padded_ = true;
    }
    if (zlib_.avail_in == 0) return false;
    if (padded_) fail("bytes that are no gzip data follow the end");
    inflateReset(&zlib_);
    inside_ = true;
    return true;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(
        fmt::format("{}: damaged gzip data ({}); copy the file anew, or check it with gzip -t", name_, what));
  }

  std::unique_ptr<std::istream> file_;
  std::string name_;
  std::vector<char> packed_, plain_;
  z_stream zlib_ = {};
  bool inside_ = false;  // a member has begun and not ended
  bool padded_ = false;
  bool any_ = false;  // a member has ended
};

/// A stream that owns its buffer and lets through what that throws.
template <class Buffer>
class BufferStream : public std::istream {
 public:
  template <class... Arguments>
  explicit BufferStream(Arguments&&... arguments)
      : std::istream(nullptr), buffer_(std::forward<Arguments>(arguments)...) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);
  }

 private:
  Buffer buffer_;
};

bool begins_like_gzip(std::istream& in) {
  if (in.peek() != 0x1F) {
    in.clear();  // an empty file is at its end already
    return false;
  }
  in.get();
  const bool gzip = in.peek() == 0x8B;
  in.clear();
  in.unget();
  return gzip;
}

}  // namespace

std::unique_ptr<std::istream> open_bytes(const std::filesystem::path& path) {
  const std::string name = path.string();
  const int file = open_input(path);
  struct stat status {};
  if (file >= 0 && ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(file);
    throw DataError(fmt::format("{}: this is a directory; give the path of a file", name));
  }
  if (file < 0 && errno == ENOENT) {
    const std::string lost = lost_link(path);
    throw DataError(fmt::format("{}: {}", name, lost.empty() ? "there is no such file; check the path" : lost));
  }
  if (file < 0) {
    throw DataError(fmt::format("{}: cannot be opened ({}); check that you may read it", name, std::strerror(errno)));
  }
  return std::make_unique<BufferStream<FileBuffer>>(file, name);
}

std::unique_ptr<std::istream> open_text(const std::filesystem::path& path) {
  auto in = open_bytes(path);
  if (path.extension() != ".gz" && !begins_like_gzip(*in)) return in;
  return std::make_unique<BufferStream<GzipBuffer>>(std::move(in), path.string());
}

}  // namespace weft

#include "weft/data/text_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <streambuf>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/core/error.h"

namespace weft {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

/// Unpacks gzip members one after another.
class GzipBuffer : public std::streambuf {
 public:
  GzipBuffer(std::unique_ptr<std::ifstream> file, std::string name)
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
        if (inside_ || members_ == 0) fail("ends too early");
        return traits_type::eof();
      }
      if (!inside_ && !begin_member()) continue;
      zlib_.next_out = reinterpret_cast<Bytef*>(plain_.data());
      zlib_.avail_out = static_cast<uInt>(plain_.size());
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        inside_ = false;
        ++members_;
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
    if (file_->bad()) throw DataError(name_ + ": reading failed; check the disk");
    zlib_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    zlib_.avail_in = static_cast<uInt>(file_->gcount());
    return zlib_.avail_in > 0;
  }

  /// Zeros after the last member are padding, as tapes leave it; anything else begins a member.
  bool begin_member() {
    while (members_ > 0 && zlib_.avail_in > 0 && *zlib_.next_in == 0) {
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

  std::unique_ptr<std::ifstream> file_;
  std::string name_;
  std::vector<char> packed_, plain_;
  z_stream zlib_ = {};
  bool inside_ = false;  // a member has begun and not ended
  bool padded_ = false;
  int members_ = 0;
};

class GzipStream : public std::istream {
 public:
  GzipStream(std::unique_ptr<std::ifstream> file, std::string name)
      : std::istream(nullptr), buffer_(std::move(file), std::move(name)) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);  // lets through what the buffer throws
  }

 private:
  GzipBuffer buffer_;
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

std::unique_ptr<std::istream> open_text(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw DataError(fmt::format("{}: there is no such file; check the path", name));
  }
  if (std::filesystem::is_directory(status)) {
    throw DataError(fmt::format("{}: this is a directory; give the path of a text file", name));
  }
  errno = 0;
  auto in = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*in) {
    throw DataError(fmt::format("{}: cannot be opened ({}); check that you may read it", name,
                                errno != 0 ? std::strerror(errno) : "unknown cause"));
  }
  if (path.extension() == ".gz" || begins_like_gzip(*in)) return std::make_unique<GzipStream>(std::move(in), name);
  return in;
}

}  // namespace weft

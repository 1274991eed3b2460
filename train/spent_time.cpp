#include "weft/train/spent_time.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/core/temporary.h"

namespace weft {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw Error(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

}  // namespace

double read_spent_seconds(const std::filesystem::path& path) {
  constexpr std::uint64_t kMostBytes = 64;
  if (!is_there(path)) return 0;
  const InputFile file(path);
  std::string text(static_cast<std::size_t>(std::min(kMostBytes, file.size())), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && end != text.data() + text.size() && *end == '\n';
  return whole && std::isfinite(seconds) ? std::max(0.0, seconds) : 0;
}

SpentTime::SpentTime(std::filesystem::path path, double seconds) : path_(std::move(path)) {
  const std::filesystem::path beside = fmt::format("{}.{}.tmp", path_.string(), ::getpid());
  Temporary temporary(beside);
  file_ = temporary.file();
  if (file_ < 0) fail(path_);
  try {
    write(seconds);
    if (!temporary.rename_to(path_)) fail(path_);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

SpentTime::~SpentTime() { ::close(file_); }

void SpentTime::write(double seconds) const {
  const std::string text = fmt::format("{:016.3f}\n", seconds);  // of one length, so that nothing older shows behind it
  const ssize_t written = uninterrupted([&] { return ::pwrite(file_, text.data(), text.size(), 0); });
  if (written == static_cast<ssize_t>(text.size())) return;
  if (written >= 0) errno = ENOSPC;  // a part of so little
  fail(path_);
}

void ExpectedTime::take(double seconds) { last_[taken_++ % last_.size()] = seconds; }

double ExpectedTime::seconds() const {
  if (taken_ < 2) return last_[0];
  auto longest_first = last_;  // what was not taken yet is 0
  std::nth_element(longest_first.begin(), longest_first.begin() + 1, longest_first.end(), std::greater<>());
  return longest_first[1];
}

}  // namespace weft

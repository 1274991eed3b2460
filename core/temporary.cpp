#include "weft/core/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "weft/core/file_calls.h"
#include "weft/core/folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The temporaries that are being written, for the handler of a signal.
std::array<std::atomic<const char*>, 16> temporaries;
static_assert(std::atomic<const char*>::is_always_lock_free);

/// Closes a file without a change of errno.
void close_quietly(int file) {
  const int error = errno;
  file_calls().close(file);
  errno = error;
}

/// Removes what is in the place of a temporary, once nothing writes to it any more; false, with errno, if that fails.
bool remove_old(const fs::path& path) {
  const int file = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); });
  if (file < 0) return errno == ENOENT;
  const bool locked = uninterrupted([&] { return ::flock(file, LOCK_EX); }) == 0;
  // If another process renamed or removed it meanwhile, what is there now is not this one.
  const bool gone = locked && !is_at(file, path) ? errno == 0 : file_calls().unlink(path.c_str()) == 0;
  close_quietly(file);
  return gone;
}

/// Makes a temporary and locks it, by which others know that it is being written. Again if meanwhile another process
/// removed it.
int open_temporary(const fs::path& path) {
  constexpr int kMostTries = 100;
  for (int i = 0; i < kMostTries; ++i) {
    const int file = uninterrupted(
        [&] { return file_calls().open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); });
    if (file < 0) {
      if (errno == EEXIST && remove_old(path)) continue;
      return -1;
    }
    // A file system without locks is no reason not to write.
    const bool locked = uninterrupted([&] { return ::flock(file, LOCK_EX); }) == 0;
    if (!locked || is_at(file, path)) return file;
    if (errno != 0) {  // it cannot be looked at
      const int error = errno;
      file_calls().unlink(path.c_str());
      errno = error;
      close_quietly(file);
      return -1;
    }
    close_quietly(file);
  }
  errno = EBUSY;
  return -1;
}

}  // namespace

Temporary::Temporary(const fs::path& path) : path_(path) {
  for (auto& place : temporaries) {  // before there is a file: a signal may come at any moment
    const char* none = nullptr;
    if (!place.compare_exchange_strong(none, path.c_str())) continue;
    place_ = &place;
    break;
  }
  file_ = open_temporary(path);
  if (file_ >= 0) lock_ = ::fcntl(file_, F_DUPFD_CLOEXEC, 0);
}

Temporary::~Temporary() {
  if (file_ >= 0 && !renamed_) file_calls().unlink(path_.c_str());
  if (place_ != nullptr) *place_ = nullptr;
  if (lock_ >= 0) ::close(lock_);
}

bool Temporary::rename_to(const fs::path& target) {
  renamed_ = uninterrupted([&] { return file_calls().rename(path_.c_str(), target.c_str()); }) == 0;
  if (renamed_ && place_ != nullptr) *std::exchange(place_, nullptr) = nullptr;
  return renamed_;
}

std::optional<std::string_view> file_of_temporary(std::string_view name) {
  constexpr std::string_view kSuffix = ".tmp";
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const std::size_t dot = name.find_last_not_of("0123456789");
  if (dot == name.npos || dot == 0 || dot + 1 == name.size() || name[dot] != '.') return std::nullopt;
  return name.substr(0, dot);
}

void remove_temporaries() noexcept {
  for (const auto& place : temporaries) {
    if (const char* path = place.load()) ::unlink(path);
  }
}

void remove_dead_temporaries(const fs::path& folder, FunctionRef<bool(std::string_view name)> wanted) {
  for (const std::string& name : names_in(folder)) {
    const auto file_name = file_of_temporary(name);
    if (!file_name || !wanted(*file_name)) continue;
    const fs::path path = folder / name;
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0 && is_at(file, path)) file_calls().unlink(path.c_str());
    ::close(file);
  }
}

}  // namespace weft

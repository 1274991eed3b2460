#include "weft/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/core/temporary.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1 << 16;

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_reading(const fs::path& path, int error) {
  if (const std::string lost = error == ENOENT ? lost_link(path) : ""; !lost.empty()) {
    throw DataError(fmt::format("{}: cannot be read: {}", path.string(), lost));
  }
  const char* mend = "check the disk";
  if (error == ENOENT || error == ENOTDIR) mend = "check the path";
  if (error == EISDIR) mend = "name a file in it";
  if (error == EACCES || error == EPERM) mend = "ask for the right to read it";
  throw DataError(fmt::format("{}: cannot be read: {}; {}", path.string(), reason(error), mend));
}

[[noreturn]] void fail_writing(const fs::path& path, std::string_view step, int error) {
  if (const std::string lost = error == ENOENT ? lost_link(path) : ""; !lost.empty()) {
    throw Error(fmt::format("{}: cannot be written: {}", path.string(), lost));
  }
  const char* mend = "check the disk";
  if (error == ENOENT || error == ENOTDIR) mend = "create its folder first";
  if (error == ENOSPC || error == EDQUOT) mend = "free some space or choose another disk";
  if (error == EACCES || error == EPERM || error == EROFS) mend = "choose a folder that you may write to";
  if (error == ENAMETOOLONG) mend = "choose a shorter name; it is written under one that is some letters longer";
  if (error == EFBIG) mend = "raise the limit on the size of files (ulimit -f)";
  throw Error(fmt::format("{}: cannot be written: {} ({}); {}", path.string(), reason(error), step, mend));
}

/// A file descriptor that is closed at the end, errors or not.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(const fs::path& path, int flags)
      : file_(uninterrupted([&] { return file_calls().open(path.c_str(), flags | O_CLOEXEC, 0666); })) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }
  int close() { return file_ < 0 ? 0 : file_calls().close(release()); }

 private:
  int file_;
};

void write_all(int file, const fs::path& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted([&] { return file_calls().write(file, bytes.data(), bytes.size()); });
    if (count <= 0) fail_writing(path, "write", count < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// What is written in the place of `path`: the file that a link leads to, or would, the path itself where there is no link.
fs::path file_behind(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  if (!error) return resolved;
  if (error != std::errc::no_such_file_or_directory) fail_writing(path, "find", error.value());
  return end_of_links(path);
}

fs::path temporary_of(const fs::path& target) { return fmt::format("{}.{}.tmp", target.string(), ::getpid()); }

}  // namespace

FileCalls& file_calls() {
  static FileCalls calls{
      [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      ::read,
      ::pread,
      ::write,
      ::fsync,
      ::close,
      std::rename,
      ::unlink,
  };
  return calls;
}

std::string read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (file.get() < 0) fail_reading(path, errno);
  std::string bytes;
  std::size_t filled = 0;
  while (true) {
    // Grows by doubling from what is there, so it needs no size beforehand and reads pipes too.
    if (filled == bytes.size()) bytes.resize(std::max(kBufferBytes, 2 * filled));
    const ssize_t count =
        uninterrupted([&] { return file_calls().read(file.get(), bytes.data() + filled, bytes.size() - filled); });
    if (count < 0) fail_reading(path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

InputFile::InputFile(const fs::path& path) : path_(path), file_(-1), size_(0) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);  // which waits for no writer of a pipe, to refuse it below
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) fail_reading(path, errno);
  if (S_ISDIR(status.st_mode)) fail_reading(path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw DataError(fmt::format("{}: is not a regular file; copy its contents to one", path.string()));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  file_ = file.release();
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (file_ >= 0) file_calls().close(file_);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count =
        uninterrupted([&] { return file_calls().pread(file_, to.data(), to.size(), static_cast<off_t>(offset)); });
    if (count < 0) fail_reading(path_, errno);
    if (count == 0) {
      throw DataError(fmt::format("{}: ends after {} bytes while it is being read; let nothing else write to it",
                                  path_.string(), offset));
    }
    offset += static_cast<std::uint64_t>(count);
    to = to.subspan(static_cast<std::size_t>(count));
  }
}

void FileWriter::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() <= kBufferBytes) {
    buffer_.append(text);
    return;
  }
  write_all(file_, path_, text);
}

void FileWriter::flush() {
  write_all(file_, path_, buffer_);
  buffer_.clear();
}

void write_file_atomically(const fs::path& path, FunctionRef<void(FileWriter&)> write) {
  const fs::path target = file_behind(path);
  struct stat before;
  const bool replaces = ::stat(target.c_str(), &before) == 0;
  if (!replaces && errno != ENOENT && errno != ENOTDIR) fail_writing(path, "find", errno);
  if (replaces && !S_ISREG(before.st_mode)) {
    throw Error(fmt::format("{}: cannot be written: it is a folder or a device; name a file", path.string()));
  }
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  Descriptor folder(parent, O_RDONLY | O_DIRECTORY);
  if (folder.get() < 0) fail_writing(path, "open folder", errno);

  const fs::path beside = temporary_of(target);
  Temporary temporary(beside);
  Descriptor file(temporary.file());
  if (file.get() < 0) fail_writing(path, "open", errno);
  if (replaces) {  // one that was kept from others' eyes stays so, and its owner's, as far as that is allowed
    if (::fchown(file.get(), before.st_uid, before.st_gid) != 0) errno = 0;
    ::fchmod(file.get(), before.st_mode & 0777);
  }

  FileWriter writer(path, file.get());
  write(writer);
  writer.flush();
  if (uninterrupted([&] { return file_calls().fsync(file.get()); }) != 0) fail_writing(path, "fsync", errno);
  if (file.close() != 0 && errno != EINTR) fail_writing(path, "close", errno);  // interrupted, but on the disk
  if (!temporary.rename_to(target)) fail_writing(path, "rename", errno);
  // From here on the new file is in place; what can still fail is that the disk knows. Some file systems have
  // no fsync for folders and say EINVAL.
  if (uninterrupted([&] { return file_calls().fsync(folder.get()); }) != 0 && errno != EINVAL) {
    fail_writing(path, "fsync folder", errno);
  }
}

void require_can_write(const fs::path& path) {
  const fs::path beside = temporary_of(file_behind(path));
  const Temporary temporary(beside);
  const Descriptor file(temporary.file());
  if (file.get() < 0) fail_writing(path, "open", errno);
}

void write_file(const fs::path& path, std::string_view bytes) {
  write_file_atomically(path, [&](FileWriter& writer) { writer.write(bytes); });
}

AppendedFile::AppendedFile(const fs::path& path) : path_(path) {
  // Without waiting for the reader of a pipe.
  Descriptor file(path_, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK);
  if (file.get() < 0) {
    const int error = errno;
    std::error_code ignored;
    if ((error == EACCES || error == EPERM) && fs::exists(path_, ignored)) {
      throw Error(fmt::format("{}: cannot be written: {} (open); ask for the right to write to it", path_.string(),
                              reason(error)));
    }
    fail_writing(path_, "open", error);
  }
  file_ = file.release();
}

AppendedFile::~AppendedFile() { file_calls().close(file_); }

void AppendedFile::write(std::string_view text) { write_all(file_, path_, text); }

void remove_leftovers(const fs::path& path) {
  const fs::path target = file_behind(path);
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  for (const std::string& name : names_in(parent)) {
    if (file_of_temporary(name) == target.filename().string()) file_calls().unlink((parent / name).c_str());
  }
}

}  // namespace weft

#include "weft/core/folder.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "weft/core/error.h"

namespace weft {
namespace {

[[noreturn]] void fail_looking(const std::filesystem::path& path, int error) {
  throw Error(fmt::format("{}: cannot be looked at: {}; check the path, the disk and the right to read it",
                          path.string(), std::generic_category().message(error)));
}

bool is_nothing(int error) { return error == ENOENT || error == ENOTDIR; }  // ENOTDIR: a path below a file

/// The mode of what is at a path, at the end of its links; 0 for nothing.
mode_t mode_at(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return status.st_mode;
  if (!is_nothing(errno)) fail_looking(path, errno);
  if (const std::string lost = lost_link(path); !lost.empty()) {
    throw DataError(fmt::format("{}: {}", path.string(), lost));
  }
  return 0;
}

}  // namespace

std::string lost_link(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) || error) return "";
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (target.empty()) return "";  // no link
  std::string shown;
  for (const char c : target.native()) shown += c == '\n' ? std::string("\\n") : std::string(1, c);  // of one line
  return fmt::format("is a link to {}, which leads to nothing; put that back, or mend the link", shown);
}

std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the system follows
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

bool is_there(const std::filesystem::path& path) { return mode_at(path) != 0; }

bool is_file(const std::filesystem::path& path) { return S_ISREG(mode_at(path)); }

bool is_folder(const std::filesystem::path& path) { return S_ISDIR(mode_at(path)); }

bool is_at(int file, const std::filesystem::path& path) {
  struct stat held {
  }, there{};
  if (::fstat(file, &held) != 0) return false;
  if (::stat(path.c_str(), &there) != 0) {
    if (is_nothing(errno)) errno = 0;
    return false;
  }
  errno = 0;
  return held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
  std::vector<std::string> names;
  if (!open) {
    if (!is_nothing(errno)) fail_looking(folder, errno);
    return names;
  }
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  if (errno != 0) fail_looking(folder, errno);
  return names;
}

}  // namespace weft

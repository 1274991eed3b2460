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

}  // namespace

std::string lost_link(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return "";
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (target.empty()) return "";  // no link
  return fmt::format("is a link to {}, which leads to nothing; put that back, or mend the link", target.string());
}

std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the system follows
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

bool is_there(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail_looking(path, errno);  // ENOTDIR: a path below a file
  if (const std::string lost = lost_link(path); !lost.empty()) {
    throw DataError(fmt::format("{}: {}", path.string(), lost));
  }
  return false;
}

bool is_at(int file, const std::filesystem::path& path) {
  struct stat held {
  }, there{};
  return ::fstat(file, &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
  std::vector<std::string> names;
  if (!open) {
    if (errno != ENOENT && errno != ENOTDIR) fail_looking(folder, errno);
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

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

std::filesystem::path lost_target(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return {};
  return std::filesystem::read_symlink(path, error);  // empty where there is no link
}

bool is_there(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail_looking(path, errno);  // ENOTDIR: a path below a file
  if (const std::filesystem::path target = lost_target(path); !target.empty()) {
    throw DataError(fmt::format("{}: is a link to {}, which leads to nothing; put that back, or remove the link",
                                path.string(), target.string()));
  }
  return false;
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

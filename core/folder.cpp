#include "weft/core/folder.h"

#include <dirent.h>

#include <memory>

namespace weft {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
  std::vector<std::string> names;
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

}  // namespace weft

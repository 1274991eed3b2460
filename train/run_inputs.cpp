#include "weft/train/run_inputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/core/error.h"
#include "weft/train/run_files.h"
#include "weft/train/run_folder.h"
#include "weft/train/training_text.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Throws unless an error says that nothing is there: what cannot be looked at may be what is removed.
void require_nothing(const fs::path& path, int error) {
  if (error == ENOENT || error == ENOTDIR || error == 0) return;
  throw Error(fmt::format("{}: cannot be looked at: {}; check the path, the disk and the right to read it",
                          path.string(), std::generic_category().message(error)));
}

/// Whether two paths lead to one folder, which may be mounted in two places.
bool is_one_folder(const fs::path& one, const fs::path& other) {
  struct stat status[2] = {};
  for (const auto& [path, to] : {std::pair(&one, &status[0]), std::pair(&other, &status[1])}) {
    const fs::path place = path->empty() ? "." : *path;
    if (::stat(place.c_str(), to) == 0) continue;
    require_nothing(place, errno);
    return false;
  }
  return status[0].st_dev == status[1].st_dev && status[0].st_ino == status[1].st_ino;
}

/// Whether an entry of a folder is one that a run which begins in `run` removes or replaces.
bool is_removed(const fs::path& entry, const fs::path& run, const DataConfig& data) {
  const std::string name = entry.filename().string();
  const auto is_in = [&](const fs::path& folder) { return is_one_folder(entry.parent_path(), folder); };
  return (is_name_of_run(name) && is_in(run)) ||
         (is_cache_name(name) && data.cache.empty() && is_in(cache_folder(data, run)));
}

/// The first entry on the way to a file, itself or a link that leads there, which is_removed; empty if there is none.
fs::path removed_on_way(fs::path path, const fs::path& run, const DataConfig& data) {
  constexpr int kMostLinks = 40;  // as the system follows
  for (int i = 0; i < kMostLinks; ++i) {
    if (is_removed(path, run, data)) return path;
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error == std::errc::invalid_argument) break;  // it is no link
    require_nothing(path, error.value());
    if (error) break;
    path = path.parent_path() / target;
  }
  return {};
}

}  // namespace

void require_inputs_kept(const fs::path& folder, const Config& config, bool fresh) {
  const auto require_kept = [&](const std::string& what, const std::string& file) {
    const fs::path removed = removed_on_way(file, folder, config.data);
    if (removed.empty()) return;
    throw ConfigError(fmt::format("{} {}, which {}; copy it to another place, or choose another folder with --run",
                                  what, removed == file ? file : fmt::format("{}, {}", file, removed.string()),
                                  fresh ? "--fresh would remove" : "this run would replace"));
  };
  if (const std::string& start = config.training.warm_start; !start.empty()) {
    require_kept("training.warm_start is", start);
  }
  for (const std::string& file : all_files(config.data)) require_kept("data has the file", file);
}

}  // namespace weft

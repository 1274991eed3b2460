#include "weft/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/core/safetensors.h"
#include "weft/train/divergence.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/spent_time.h"

namespace weft {

namespace fs = std::filesystem;

void make_run_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw DataError(fmt::format("{}: cannot be used as run folder ({}); choose another with --run", folder.string(),
                                error ? error.message() : std::strerror(errno)));
  }
}

void clean_run_folder(const fs::path& folder, const std::set<Index>& kept, bool fresh, const fs::path& config_file) {
  // `best` before `last`: a process killed in between leaves a run that can go on, and not another run's best checkpoint.
  for (const char* name :
       {"best.safetensors", kRollbackFile, "last.safetensors", "log.jsonl", kSpentFile, "config.json"}) {
    const fs::path path = folder / name;
    remove_leftovers(path);
    std::error_code error;
    if (fresh && !is_same_file(path, config_file)) fs::remove(path, error);
    if (error) throw Error(fmt::format("{}: cannot remove ({})", path.string(), error.message()));
  }
  remove_step_checkpoints(folder, kept);
}

bool is_run_checkpoint(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".safetensors" && (name == "last.safetensors" || name == "best.safetensors" ||
                                                name == kRollbackFile || name.starts_with("step-"));
}

bool is_whole(const fs::path& checkpoint) {
  if (!is_there(checkpoint)) return false;
  try {
    SafetensorsFile::open(checkpoint, {.require_checksum = true});
    return true;
  } catch (const UnreadableError&) {
    throw;
  } catch (const CheckpointError&) {
    return false;
  }
}

FolderLock::FolderLock(const fs::path& folder)
    : folder_(folder), file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // A file system without locks is no reason not to train.
  if (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    throw DataError(fmt::format(
        "{}: another weft train is at work there; wait for it, or choose another folder with --run", folder.string()));
  }
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

void FolderLock::require_held() const {
  if (file_ < 0 || is_at(file_, folder_)) return;
  throw Error(
      fmt::format("{}: the folder of this run was removed or moved while it ran, or another took its place; "
                  "nothing is saved there. Put it back and go on from its last checkpoint, or start anew",
                  folder_.string()));
}

void require_no_results(const fs::path& folder, const Config& config, const Registry& registry) {
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    if (!is_run_checkpoint(path)) continue;
    if (is_whole(path)) {
      const Checkpoint found = load_checkpoint(path, registry);
      if (found.state.validations.size() <= 1) {
        require_same_config(found.model->config(), config, folder.string());
        require_same_files(config.data, found.state.file_hashes, folder.string());
        continue;
      }
    }
    throw DataError(
        fmt::format("{}: holds {}, but no last.safetensors to go on from; use --fresh to replace it, "
                    "or --run to choose another folder",
                    folder.string(), name));
  }
}

void require_not_removed(const fs::path& folder, const std::string& warm_start) {
  const fs::path path = warm_start;
  if (warm_start.empty() || !is_run_checkpoint(path) || !is_same_file(path, folder / path.filename())) return;
  throw ConfigError(
      fmt::format("training.warm_start is {}, which --fresh would remove; copy it to another place, or choose "
                  "another folder with --run",
                  warm_start));
}

void mend_best(const fs::path& folder, TrainingState& state, bool ended, Progress& progress) {
  const fs::path best = folder / "best.safetensors";
  if (state.best_step == 0 || is_whole(best)) return;
  const fs::path kept = step_checkpoint(folder, state.best_step);
  if (is_whole(kept)) {
    write_file(best, read_file(kept));
    progress.line(fmt::format("best.safetensors was missing or damaged; made anew from {}", kept.filename().string()));
    return;
  }
  progress.line(ended ? "best.safetensors is missing or damaged, and no other file has it; last.safetensors is whole"
                      : "best.safetensors is missing or damaged; the next validation begins a new one");
  state.best_step = 0;
}

}  // namespace weft

#include "weft/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/safetensors.h"
#include "weft/train/divergence.h"
#include "weft/train/kept_checkpoints.h"

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

void clean_run_folder(const fs::path& folder, const std::set<Index>& kept, bool fresh) {
  for (const char* name : {"last.safetensors", "best.safetensors", kRollbackFile, "log.jsonl", "config.json"}) {
    remove_leftovers(folder / name);
    std::error_code error;
    if (fresh) fs::remove(folder / name, error);
    if (error) throw Error(fmt::format("{}: cannot remove ({})", (folder / name).string(), error.message()));
  }
  remove_step_checkpoints(folder, kept);
}

bool is_whole(const fs::path& checkpoint) {
  try {
    SafetensorsFile::open(checkpoint, {.require_checksum = true});
    return true;
  } catch (const CheckpointError&) {
    return false;
  }
}

FolderLock::FolderLock(const fs::path& folder) : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
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

void require_no_results(const fs::path& folder, const Registry& registry) {
  const fs::path best = folder / "best.safetensors";
  std::error_code error;
  if (!fs::exists(best, error)) return;
  if (is_whole(best) && load_checkpoint(best, registry).state.validations.size() <= 1) return;
  throw DataError(
      fmt::format("{}: holds best.safetensors, but no last.safetensors to go on from; use --fresh to replace it, "
                  "or --run to choose another folder",
                  folder.string()));
}

void mend_best(const fs::path& folder, TrainingState& state, Progress& progress) {
  const fs::path best = folder / "best.safetensors";
  if (state.best_step == 0 || is_whole(best)) return;
  const fs::path kept = step_checkpoint(folder, state.best_step);
  if (is_whole(kept)) {
    write_file(best, read_file(kept));
    progress.line(fmt::format("best.safetensors was missing or damaged; made anew from {}", kept.filename().string()));
    return;
  }
  progress.line("best.safetensors is missing or damaged; the next validation begins a new one");
  state.best_step = 0;
}

}  // namespace weft

#include "weft/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/core/safetensors.h"
#include "weft/core/temporary.h"
#include "weft/train/config_reader.h"
#include "weft/train/divergence.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/run_log.h"
#include "weft/train/spent_time.h"
#include "weft/train/trainer.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

/// The step of a checkpoint; nothing if it is missing or damaged.
std::optional<Index> step_in(const fs::path& checkpoint) {
  if (!is_there(checkpoint)) return std::nullopt;
  try {
    return load_state(checkpoint).step;
  } catch (const UnreadableError&) {
    throw;
  } catch (const CheckpointError&) {
    return std::nullopt;
  }
}

/// The configuration in a file, if Weft wrote it.
std::optional<Config> written_config(const fs::path& path) {
  if (!is_file(path) || InputFile(path).size() > kMostConfigFileBytes) return std::nullopt;
  const std::string text = read_file(path);
  try {
    Config config = parse_config(text, path.string());
    return config_json(config) == text ? std::optional(std::move(config)) : std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

/// Whether a file is one of seconds that Weft wrote.
bool is_spent_file(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = 64;
  if (!is_file(path) || InputFile(path).size() > kMostBytes) return false;
  const std::string text = read_file(path);
  return text == fmt::format("{:016.3f}\n", read_spent_seconds(path));
}

/// Of these files of a toy task, those that the task of another configuration does not make either.
std::vector<std::string> not_made_by(const DataConfig& config, const fs::path& run,
                                     const std::vector<std::string>& names) {
  if (names.empty() || config.task.empty()) return names;
  const RunText text(config);
  const std::vector<std::string> others = other_task_files(text.task(), run);
  const auto is_made = [&](const std::string& name) {
    try {
      (void)text.split(fs::path(name).stem().string());
      return std::find(others.begin(), others.end(), name) == others.end();
    } catch (const DataError&) {  // it has no such text
      return false;
    }
  };
  std::vector<std::string> left;
  for (const std::string& name : names) {
    if (!is_made(name)) left.push_back(name);
  }
  return left;
}

/// What a run keeps in its folder beside step checkpoints, `best` before `last`.
constexpr const char* kNames[] = {"best.safetensors", kRollbackFile, "last.safetensors",
                                  "log.jsonl",        kSpentFile,    "config.json"};

/// Whether a process was killed while it saved `last`.
bool was_saving_last(const fs::path& folder) {
  const std::vector<std::string> names = names_in(folder);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return file_of_temporary(name) == "last.safetensors"; });
}

/// Whether flock failed as file systems do that have no such locks, which is no reason not to train.
bool has_no_locks(int error) {
  return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == ENOLCK || error == EBADF;
}

}  // namespace

void make_run_folder(const fs::path& folder) {
  (void)is_there(folder);  // throws for a link that leads to nothing
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw DataError(fmt::format("{}: cannot be used as run folder ({}); choose another with --run", folder.string(),
                                error ? error.message() : std::strerror(errno)));
  }
}

void require_no_folders(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    std::error_code ignored;
    if (!is_name_of_run(name) || !fs::is_directory(fs::symlink_status(path, ignored))) continue;
    throw DataError(fmt::format("{}: is a folder in the place of a run's file; move it away", path.string()));
  }
}

void require_no_links_within(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    std::error_code error;
    if (!is_name_of_run(name) || !fs::is_symlink(path, error)) continue;
    const fs::path target = end_of_links(path);
    if (!is_name_of_run(target.filename().string()) || !fs::equivalent(target.parent_path(), folder, error)) continue;
    throw DataError(
        fmt::format("{}: is a link to {}, which would change with it; remove the link, or copy the file to its place",
                    path.string(), target.filename().string()));
  }
}

void clean_run_folder(const fs::path& folder, const std::set<Index>& kept, bool fresh, const fs::path& config_file) {
  // `best` before `last`: a process killed in between leaves a run that can go on, and not another run's best checkpoint.
  remove_step_checkpoints(folder, kept);
  for (const char* name : kNames) {
    const fs::path path = folder / name;
    remove_leftovers(path);
    if (!fresh || is_same_file(path, config_file)) continue;
    if (file_calls().unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    throw Error(fmt::format("{}: cannot remove ({})", path.string(), std::strerror(errno)));
  }
}

std::vector<std::string> files_of_run(const fs::path& folder) {
  std::vector<std::string> files;
  for (const std::string& name : names_in(folder)) {
    if (is_name_of_run(name)) files.push_back((folder / name).string());
  }
  return files;
}

bool is_name_of_run(const std::string& name) {
  return is_run_checkpoint(name) || std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_run_checkpoint(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".safetensors" &&
         (name == "last.safetensors" || name == "best.safetensors" || name == kRollbackFile || step_of(name));
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
    : folder_(folder),
      file_(uninterrupted([&] { return file_calls().open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); })) {
  const int locked = file_ < 0 ? -1 : uninterrupted([&] { return ::flock(file_, LOCK_EX | LOCK_NB); });
  const int error = errno;
  if (locked == 0) return;
  if (file_ >= 0 && has_no_locks(error)) {
    why_not_locked_ = std::strerror(error);
    return;
  }
  if (file_ >= 0) ::close(file_);
  if (file_ >= 0 && error == EWOULDBLOCK) {
    throw DataError(fmt::format(
        "{}: another weft train is at work there; wait for it, or choose another folder with --run", folder.string()));
  }
  throw DataError(
      fmt::format("{}: cannot be held as run folder ({}); check the disk and the right to read it, or choose "
                  "another folder with --run",
                  folder.string(), std::strerror(error)));
}

FolderLock::~FolderLock() { ::close(file_); }

void FolderLock::require_held() const {
  if (is_at(file_, folder_)) return;
  if (errno != 0) {
    throw Error(
        fmt::format("{}: the folder of this run cannot be looked at: {}; nothing is saved there. Check the disk "
                    "and the right to read it, then go on from its last checkpoint with the same command",
                    folder_.string(), std::strerror(errno)));
  }
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
      // The result of a run that is over is a kill's leftover only if `last` was being saved beside it.
      if (found.state.validations.size() <= 1 &&
          (!training_end(found.state, found.model->config().training) || was_saving_last(folder))) {
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

void require_no_other_files(const fs::path& folder, const Config& config, const fs::path& config_file,
                            const RunText& text) {
  const fs::path config_path = folder / "config.json", log = folder / "log.jsonl";
  const bool logged = is_there(log);
  std::vector<std::string> others;
  if (logged && !is_run_log(log.string())) others.push_back("log.jsonl");
  if (config.training.minutes > 0 && is_there(folder / kSpentFile) && !is_spent_file(folder / kSpentFile)) {
    others.push_back(kSpentFile);
  }
  std::vector<std::string> data = other_task_files(text.task(), folder);
  if (is_there(config_path) && !is_same_file(config_path, config_file)) {
    const std::optional<Config> found = written_config(config_path);
    // A run that ended before its first checkpoint may have had another configuration; its log tells that it was one.
    const bool of_a_run = found && (logged || run_differences(*found, config).empty());
    if (!of_a_run) others.push_back("config.json");
    if (of_a_run) data = not_made_by(found->data, folder, data);
  }
  if (is_task_unfinished(folder)) data.clear();  // a run was killed that wrote there
  for (const std::string& name : data) others.push_back(fmt::format("{}/{}", kTaskFolder, name));
  if (others.empty()) return;
  throw DataError(fmt::format(
      "{}: holds {}, which is not of this run; use --fresh to replace it, or --run to choose another folder",
      folder.string(), fmt::join(others, ", ")));
}

void mend_best(const fs::path& folder, TrainingState& state, bool ended, Progress& progress) {
  if (state.best_step == 0) return;
  const fs::path best = folder / "best.safetensors";
  const std::optional<Index> step = step_in(best);
  if (step == state.best_step) return;
  const std::string problem = step ? fmt::format("of step {}, not {}", *step, state.best_step) : "missing or damaged";
  const fs::path kept = step_checkpoint(folder, state.best_step);
  if (step_in(kept) == state.best_step) {
    copy_checkpoint(kept, best);
    progress.line(fmt::format("best.safetensors was {}; made anew from {}", problem, kept.filename().string()));
    return;
  }
  progress.line(
      fmt::format("best.safetensors is {}; {}", problem,
                  ended ? "no other file has it; last.safetensors is whole" : "the next validation begins a new one"));
  state.best_step = 0;
}

}  // namespace weft

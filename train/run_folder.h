// The folder of a training run: made, held for one process, cleared of what earlier ones left.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "weft/core/types.h"
#include "weft/nn/registry.h"
#include "weft/train/checkpoint.h"
#include "weft/train/progress.h"
#include "weft/train/run_data.h"

namespace weft {

/// Makes the run folder if it is missing. Throws DataError if it cannot be written to.
void make_run_folder(const std::filesystem::path& folder);

/// Throws DataError if a file of a run is a folder, which nothing replaces.
void require_no_folders(const std::filesystem::path& folder);

/// Throws DataError if a file of a run is a link to another file of the run, which saving would change.
void require_no_links_within(const std::filesystem::path& folder);

/// Removes what killed processes left in the run folder, step checkpoints but for those of `kept`, and, for a fresh start,
/// the other files of an earlier run, but not `config_file` if that is one. Throws Error if a file cannot be removed.
void clean_run_folder(const std::filesystem::path& folder, const std::set<Index>& kept, bool fresh,
                      const std::filesystem::path& config_file = {});

/// Holds a run folder for this process, until it ends in whatever way.
class FolderLock {
 public:
  /// Throws DataError if another process holds it, or if it cannot be held; on a file system without locks nothing holds
  /// it, and why_not_locked() says so.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  /// Throws Error if the folder was removed or moved since, so that what is written to its path would not be held, or if it
  /// cannot be looked at.
  void require_held() const;

  /// What the system said where it has no locks; empty if no other process can hold the folder too.
  const std::string& why_not_locked() const { return why_not_locked_; }

 private:
  std::filesystem::path folder_;
  int file_;
  std::string why_not_locked_;
};

/// Whether it is the name of what a run keeps in its folder: a checkpoint, its log, its configuration, its time.
bool is_name_of_run(const std::string& name);

/// Whether a path has the name of a checkpoint that runs write: last, best or one of a step.
bool is_run_checkpoint(const std::filesystem::path& path);

/// The files in a folder that have the names of what a run keeps there.
std::vector<std::string> files_of_run(const std::filesystem::path& folder);

/// Whether a checkpoint is there and undamaged. Throws Error if that cannot be found out, as the file cannot be read.
bool is_whole(const std::filesystem::path& checkpoint);

/// Throws if a folder without last.safetensors has results of a run. Those of the first validation of a run of `config` are
/// none, unless that ended the run: a process that is killed during it leaves them.
void require_no_results(const std::filesystem::path& folder, const Config& config, const Registry& registry);

/// Throws DataError if a folder without a run has files under the names of one that a first run would replace: a config.json
/// or log.jsonl that no run killed at its beginning wrote, but for `config_file`, seconds in a form that is not Weft's, or
/// text in the place of a toy task's that neither that task nor that of the run which was killed makes.
void require_no_other_files(const std::filesystem::path& folder, const Config& config,
                            const std::filesystem::path& config_file, const RunText& text);

/// Sees to it that best.safetensors is the checkpoint of the best validation so far, and not one that a killed process
/// saved later, or that the next validation makes it anew, if there is one, as the run has not `ended`.
void mend_best(const std::filesystem::path& folder, TrainingState& state, bool ended, Progress& progress);

}  // namespace weft

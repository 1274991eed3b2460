// Checkpoints of single validations in a run folder, step-<STEP>.safetensors. Which of them there are is a function of the
// validations so far and the configuration; one goes only after the last checkpoint that asks for it has been replaced.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "weft/train/config.h"
#include "weft/train/run_log.h"

namespace weft {

/// The path of a validation's checkpoint.
std::filesystem::path step_checkpoint(const std::filesystem::path& folder, Index step);

/// The step of which a file name says that it is a checkpoint of, whatever follows the ending; nothing for other files.
std::optional<Index> step_of(std::string_view name);

/// The validations whose checkpoints are kept: the best training.keep_best, if that is more than the one that
/// best.safetensors holds, and the last training.keep_last.
std::set<Index> kept_steps(std::span<const ValidationEntry> validations, const TrainingConfig& training);

/// Removes the checkpoints of all other validations, and what killed processes left of writing any. Throws Error if one
/// cannot be removed.
void remove_step_checkpoints(const std::filesystem::path& folder, const std::set<Index>& kept);

/// Writes a copy of a checkpoint to `to`, with little memory however large it is; a kill leaves what was there or the
/// whole copy. Throws DataError if it cannot be read, Error if the copy cannot be written.
void copy_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace weft

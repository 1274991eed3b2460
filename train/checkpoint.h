// Checkpoints: one safetensors file each, with the weights under their dotted names and everything else in the metadata, so
// that a checkpoint needs no other file. Writing replaces the file whole or not at all. The same model and state always
// give the same bytes: no time or place is in it.
//
// Metadata: "weft.format" ("1"), "weft.config" (resolved JSON), "weft.source_vocabulary" and "weft.target_vocabulary"
// (JSON arrays) or, with a tokenizer of subwords, "weft.source_subwords" and "weft.target_subwords" (the bytes of the .model
// files in base64; the latter is left out if it is the same), "weft.training" (JSON: where training stood), "weft.step",
// "weft.seed", "weft.best_score".
// Tensors: the parameters; with an optimizer also "optimizer.<state>", flat, in the order of ParameterSet::values(), and
// likewise the moving average of the parameters, "average.values", if there is one.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "weft/optim/optimizer.h"
#include "weft/train/loss_watch.h"
#include "weft/train/run_log.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Where a training run stands after an update. With the configuration it determines all that follows.
struct TrainingState {
  Index step = 0;        ///< updates done
  Index epoch = 0;       ///< from 0
  Index next_batch = 0;  ///< of the epoch's plan
  double loss_sum = 0;   ///< over the target tokens since the last line of the log
  Index loss_tokens = 0;
  std::vector<ValidationEntry> validations;
  Index best_step = 0;              ///< the validation of the best checkpoint; 0 before the first
  bool out_of_time = false;         ///< the clock has ended the run
  std::uint64_t held_out_hash = 0;  ///< of the pairs held out of the training text; 0 if none are, or not known
  std::uint64_t data_hash = 0;      ///< of the encoded training and validation text
  std::vector<std::uint64_t> file_hashes = {};  ///< of run_files() when the run began; none in older checkpoints
  LossWatch loss_watch = {};
  Index explosions = 0;      ///< seen by it
  Index skipped = 0;         ///< updates left out as their numbers were not finite
  Index skipped_in_row = 0;  ///< up to the last update
  Index good_step = 0;       ///< of the checkpoint that a rollback leads to
  Index rollbacks = 0;       ///< times that training went back to a checkpoint
};

/// The result by which `state.best_step` was chosen; NaN before the first validation.
double best_score(const TrainingState& state, const std::string& metric);

/// The state as the JSON object of the metadata: step, epoch, next_batch, loss_sum, loss_tokens, best_step,
/// out_of_time, held_out_hash, data_hash, file_hashes, mean_loss, least_mean_loss, loss_above, explosions, skipped,
/// skipped_in_row, good_step, rollbacks, validations.
std::string training_json(const TrainingState& state);

/// Writes a checkpoint, with the optimizer's state unless `optimizer` is null, and the parameters' moving average unless it
/// is empty. Throws Error, and writes nothing, if any of their numbers is not finite.
void save_checkpoint(const std::filesystem::path& path, TranslationModel& model, const TrainingState& state,
                     Optimizer* optimizer, std::span<const real> average = {});

/// What a checkpoint holds, without the optimizer's state.
struct Checkpoint {
  std::unique_ptr<TranslationModel> model;
  TrainingState state;
};

/// Reads a checkpoint back. Throws CheckpointError if it is missing, damaged or not of Weft, ConfigError if it names a
/// layer that the registry does not know.
Checkpoint load_checkpoint(const std::filesystem::path& path, const Registry& registry);

/// Reads where training stood at a checkpoint. Throws CheckpointError as load_checkpoint does.
TrainingState load_state(const std::filesystem::path& path);

/// Reads the parameters of a checkpoint into a model of the same configuration. Throws CheckpointError if they do not fit.
void load_parameters(const std::filesystem::path& path, TranslationModel& model);

/// Reads the optimizer's state of a checkpoint. Throws CheckpointError if it has none or another kind.
void load_optimizer(const std::filesystem::path& path, Optimizer& optimizer);

/// Reads the moving average of a checkpoint. Throws CheckpointError if it has none of that size.
void load_average(const std::filesystem::path& path, std::span<real> average);

}  // namespace weft

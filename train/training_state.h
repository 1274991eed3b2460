// Where a training run stands, and its form in a checkpoint's metadata.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/train/loss_watch.h"
#include "weft/train/run_log.h"

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

/// Reads that text back; `file` is named in errors. Throws CheckpointError for a value that a state cannot have, and an
/// exception of the JSON library for a text of another form.
TrainingState parse_training_state(const std::string& text, const std::string& file);

}  // namespace weft

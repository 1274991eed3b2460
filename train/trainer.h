// The training loop. What an update does depends on the configuration, the text and the update's number alone, so that a
// run stopped anywhere and taken up again ends with checkpoints of the same bytes as one never stopped.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weft/data/batch.h"
#include "weft/train/checkpoint.h"
#include "weft/train/evaluate.h"
#include "weft/train/progress.h"
#include "weft/train/training_step.h"

namespace weft {

/// What a training run works on.
struct TrainingData {
  Corpus train, valid;
  ParallelText valid_text;  ///< the lines that are translated at each validation
  /// The training text as epoch `epoch` has it, as many pairs in each; `train` serves all epochs if this is empty.
  std::function<Corpus(Index epoch)> train_in_epoch = {};
};

/// Why run() came back.
enum class TrainingEnd { kDone, kStopped };

/// Trains a model in a run folder, from wherever `state` stands.
class Trainer {
 public:
  /// Files written: log.jsonl, last.safetensors, best.safetensors. With a state of step 0 the log starts anew; else the
  /// optimizer's state is read from last.safetensors. Throws CheckpointError if the state does not fit the text.
  Trainer(TranslationModel& model, TrainingState state, TrainingData data, std::filesystem::path folder,
          Progress& progress);

  /// The batches of the first epoch.
  Index batches_per_epoch() const { return first_epoch_batches_; }
  /// The tokens of the first epoch, source and target together, without specials.
  Index tokens_per_epoch() const { return first_epoch_tokens_; }
  /// The tensor memory in bytes that an update takes at its peak, found by running the largest batch of the first epoch
  /// forward and backward.
  Index measure_peak_memory();

  /// Trains until the configured number of steps, or until `stop` is true after an update; either way `last` is saved.
  /// Throws Error when a loss, a gradient or a parameter is not a finite number; the checkpoints then stay as they were.
  TrainingEnd run(const volatile int& stop);

  const TrainingState& state() const { return state_; }
  /// The time of training so far, that of earlier sessions with it as far as the log has it.
  double elapsed_seconds() const;

 private:
  /// Sentences of a corpus, which another epoch may have replaced meanwhile.
  using Sentences = std::pair<std::shared_ptr<const Corpus>, std::vector<Index>>;

  std::vector<std::vector<Index>> plan(const Corpus& corpus, Index epoch) const;
  void measure_epoch(const Corpus& corpus, const std::vector<std::vector<Index>>& batches);
  void begin_epoch();
  Sentences next_sentences();
  UpdateResult update();
  void log(const UpdateResult& update);
  void require_finite_parameters();
  void validate();
  void save_last();

  const TrainingConfig& config() const { return model_.config().training; }

  TranslationModel& model_;
  TrainingState state_;
  TrainingData data_;
  std::filesystem::path folder_;
  Progress& progress_;
  TrainingStep step_;
  std::shared_ptr<const Corpus> train_;    // of epoch state_.epoch
  std::vector<std::vector<Index>> epoch_;  // its batches
  Index first_epoch_batches_ = 0, first_epoch_tokens_ = 0;
  RunLog log_;
  double started_ = 0;
  double logged_at_ = 0;
  Index timed_tokens_ = 0;  // target tokens since then; a resumed run has not timed all of state_.loss_tokens
};

}  // namespace weft

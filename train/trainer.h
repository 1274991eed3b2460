// The training loop. What an update does depends on the configuration, the text, the update's number and the validations
// before it alone, so that a run stopped anywhere and taken up again ends with checkpoints of the same bytes as one never
// stopped.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/core/error.h"
#include "weft/data/batch.h"
#include "weft/optim/moving_average.h"
#include "weft/train/checkpoint.h"
#include "weft/train/evaluate.h"
#include "weft/train/progress.h"
#include "weft/train/spent_time.h"
#include "weft/train/training_step.h"

namespace weft {

/// What a training run works on.
struct TrainingData {
  Corpus train, valid;
  ParallelText valid_text;  ///< the lines that are translated at each validation
  /// The training text as epoch `epoch` has it, as many pairs in each; `train` serves all epochs if this is empty.
  std::function<Corpus(Index epoch)> train_in_epoch = {};
  /// Where pairs of the training text, by Corpus::line, stand for the user, as "FILE:LINE". Without it messages give the
  /// pairs' numbers.
  std::function<std::vector<std::string>(std::span<const Index> pairs)> places = {};
  /// Asked before files of the run folder are written, and before a rollback reads one: throws if the folder is not
  /// this run's any more.
  std::function<void()> require_folder = [] {};
};

/// Why run() came back: all steps are made, validations have not got better for long enough, the time is over, or it was
/// told to.
enum class TrainingEnd { kDone, kOutOfPatience, kOutOfTime, kStopped };

/// Why a run that stands there is over; nothing if it is not.
std::optional<TrainingEnd> training_end(const TrainingState& state, const TrainingConfig& training);

/// Trains a model in a run folder, from wherever `state` stands.
class Trainer {
 public:
  /// Files written: log.jsonl, last.safetensors, best.safetensors, step checkpoints (see kept_checkpoints.h) and, at times,
  /// rollback.safetensors (see divergence.h). With a state of step 0 the log starts anew; else the optimizer's state is read
  /// from last.safetensors. Throws CheckpointError, before the log loses a line, if the state does not fit the text or
  /// that file lacks the optimizer's state.
  Trainer(TranslationModel& model, TrainingState state, TrainingData data, std::filesystem::path folder,
          Progress& progress);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// The batches of the epoch that training stands in.
  Index batches_per_epoch() const { return static_cast<Index>(epoch_.size()); }
  /// The tokens of the epoch that training stands in, source and target together, without specials.
  Index tokens_per_epoch() const;

  /// Trains until training_end() gives a reason, or until `stop` is true after an update; then `last` is saved, but see
  /// saved(). No number that is not finite reaches a checkpoint: training.on_divergence says what is done about it, and
  /// it is done where a run that was never stopped does it. Throws Error where that is to stop; the checkpoints then stay
  /// as they were.
  TrainingEnd run(const volatile int& stop);

  /// Has the run end, with a validation and all saved, `seconds` after its start, if it has not by then. This session
  /// has taken `spent` so far, which elapsed_seconds() then counts; what those before it took stands in kSpentFile. That
  /// is kept up to date from here to the end of this object: a kill loses the time of an update or of a validation at
  /// most. A validation is expected to take `validation_seconds` until others have been seen. Throws Error if the file
  /// cannot be read; one that cannot be written is a line of the progress.
  void end_within(double seconds, double validation_seconds, double spent = 0);

  const TrainingState& state() const { return state_; }
  /// Whether `last` holds that state, once run() came back: not if it was told to stop where a number is not finite.
  bool saved() const { return last_step_ == state_.step; }
  /// The time of training so far, with that of earlier sessions: all after end_within(), else as far as the log has it.
  double elapsed_seconds() const;

 private:
  // require_folder is asked before files are written or removed in the folder, and again after each that takes a while.

  /// Takes up the run where its state stands, and only then opens the log.
  RunLog take_up();
  /// The log up to where training stands, with so many rollbacks.
  RunLog open_log(Index rollbacks) const;
  std::vector<std::vector<Index>> plan(const Corpus& corpus, Index epoch) const;
  void begin_epoch();
  BatchSentences next_sentences();
  /// Makes an update and all that is due after it; returns whether it was told to stop, and saved for that.
  bool advance(const volatile int& stop);
  UpdateResult update();
  void log(const UpdateResult& update);
  /// Validates with the moving average, if there is one, in the place of the parameters.
  void validate();
  void validate_as_is();
  /// Saves what a run goes on from. `due` says that each run like this one saves after this step, whether it was stopped
  /// there or not; others are no place to roll back to, or a stop would change what follows.
  void save_last(bool due);
  /// Saves for a stop alone, unless there is a bad number: what is done about that is for the next save that is due,
  /// which a run that goes on from the checkpoint before comes to just as one that was not stopped.
  void save_for_stop();
  /// Saves the parameters alone.
  void save_parameters(const std::filesystem::path& path);
  /// Sets what the learning rate depends on beside the step.
  void set_rate();
  bool time_is_up(bool validates) const;
  void note_time();
  /// Goes on without kSpentFile, on which a run does not depend: a full disk shows when a checkpoint is saved.
  void go_without(const Error& error);

  // trainer_recovery.cpp
  /// Throws DivergenceError unless all that a checkpoint would hold is finite.
  void require_finite();
  /// Throws DivergenceError for a validation loss that is not finite.
  void require_finite_validation(double loss);
  /// Tells of a divergence in full.
  std::string account(const DivergenceError& divergence) const;
  std::string batch_line(const DivergenceError& divergence) const;
  /// Leaves an update out, or throws on.
  UpdateResult skip(const DivergenceError& divergence);
  /// Goes back to the last checkpoint, or throws Error with the account.
  void roll_back(const DivergenceError& divergence);
  bool may_roll_back() const;
  /// Keeps `last` as the checkpoint that a rollback leads to, though a newer one takes its place; false if there is none.
  /// Throws Error if that cannot be found out: a stop that kept none then would change what follows.
  bool keep_for_rollback();
  /// The checkpoint that a rollback leads to. Throws as TrainingData::require_folder.
  std::filesystem::path way_back() const;
  /// Looks at the loss of an update that was made.
  void watch_loss(double loss);
  void note(const char* event, Index count, const std::string& text);

  const TrainingConfig& config() const { return model_.config().training; }

  TranslationModel& model_;
  TrainingState state_;
  TrainingData data_;
  std::filesystem::path folder_, last_;  // last_: last.safetensors there
  Index last_step_;                      // that it holds; of no meaning before it is there
  Progress& progress_;
  TrainingStep step_;
  std::shared_ptr<const Corpus> train_;    // of epoch state_.epoch
  std::vector<std::vector<Index>> epoch_;  // its batches
  std::optional<MovingAverage> average_;   // with training.ema_decay
  RunLog log_;
  std::optional<SpentTime> spent_time_;  // with a budget
  double earlier_seconds_;               // of the sessions before this one
  double started_;
  double logged_at_ = 0;
  double deadline_ = std::numeric_limits<double>::infinity();
  // What printing takes, which may wait for a reader, is in neither.
  ExpectedTime update_time_, validation_time_;  // the latter with what is saved
  double printing_ = 0;                         // seconds that the last validation printed
  Index timed_tokens_ = 0;  // target tokens since then; a resumed run has not timed all of state_.loss_tokens
};

}  // namespace weft

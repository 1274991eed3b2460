// One update of a model: forward and backward over its batches, clipping, optimizer. What it does depends on the
// configuration, the batches and the number of the update alone.
#pragma once

#include <memory>

#include "weft/autograd/op_profile.h"
#include "weft/core/threads.h"
#include "weft/data/batch.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/schedule.h"
#include "weft/train/translation_model.h"

namespace weft {

/// What came of an update.
struct UpdateResult {
  double loss;           ///< mean over the target tokens
  double gradient_norm;  ///< before clipping
  double learning_rate;
  Index tokens;  ///< target tokens, </s> included
};

/// Updates the parameters of one model.
class TrainingStep {
 public:
  /// `model` must outlive it.
  explicit TrainingStep(TranslationModel& model);

  /// Makes update `step`, counted from 0, with the gradients of `batches` batches, where batch(i) gives number i, valid until the next call, and
  /// `tokens` is the number of their target tokens. Throws Error, before a parameter changes, if the loss or the
  /// gradient's norm is not finite.
  UpdateResult run(Index step, Index batches, Index tokens, FunctionRef<const Batch&(Index)> batch);

  /// Makes update `step` with these batches of sentences of a corpus.
  UpdateResult run_on(const Corpus& corpus, const std::vector<std::vector<Index>>& batches, Index step);

  /// Adds the gradients of factor * (summed loss of a batch), which is returned, to those that are there. Batch
  /// `number` of update `step` has dropout of its own.
  double add_gradients(const Batch& batch, real factor, Index step, Index number);

  /// Tells the schedule how many plateaus the validations have shown so far.
  void set_plateaus(Index count) { schedule_.plateaus = count; }

  Optimizer& optimizer() { return *optimizer_; }

  /// Adds up from now on where the time goes, until given null.
  void set_profile(OpProfile* profile);

 private:
  TranslationModel& model_;
  ScheduleOptions schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  Tape tape_;
  OpProfile* profile_ = nullptr;
};

/// Ends a run whose numbers are of no more use: throws an Error that says which number it is and what helps.
[[noreturn]] void throw_diverged(Index step, std::string_view what, double value);

}  // namespace weft

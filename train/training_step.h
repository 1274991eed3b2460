// One update of a model: forward and backward over its batches, clipping, optimizer. What it does depends on the
// configuration, the batches and the number of the update alone.
#pragma once

#include <memory>
#include <span>

#include "weft/autograd/anomaly.h"
#include "weft/autograd/op_profile.h"
#include "weft/core/threads.h"
#include "weft/data/batch.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/schedule.h"
#include "weft/train/divergence.h"
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

  /// Makes update `step`, counted from 0, with the gradients of `batches` batches, where batch(i) gives number i, valid
  /// until the next call, and `tokens` is the number of their target tokens. Throws DivergenceError, before a parameter
  /// changes, if the loss or the gradient's norm is not finite, and with training.detect_anomaly if any number of the
  /// update is not. It names the first such number, for which the update is run again where need be.
  UpdateResult run(Index step, Index batches, Index tokens, FunctionRef<const Batch&(Index)> batch);

  /// Makes update `step` with these batches, of which one at a time is held in memory; an error holds them.
  UpdateResult run(Index step, std::span<const BatchSentences> batches);

  /// Adds the gradients of factor * (summed loss of a batch), which is returned, to those that are there. Batch
  /// `number` of update `step` has dropout of its own.
  double add_gradients(const Batch& batch, real factor, Index step, Index number);

  /// Tells the schedule how many plateaus the validations have shown so far.
  void set_plateaus(Index count) { schedule_.plateaus = count; }
  /// Multiplies the schedule's learning rate by `factor` from now on.
  void set_rate_factor(double factor) { rate_factor_ = factor; }
  /// The learning rate of update `step`, counted from 0.
  double rate(Index step) const { return rate_factor_ * learning_rate(schedule_, step + 1); }

  Optimizer& optimizer() { return *optimizer_; }

  /// Adds up from now on where the time goes, until given null.
  void set_profile(OpProfile* profile);

 private:
  struct Sums {
    double loss, norm;
  };
  using Batches = FunctionRef<const Batch&(Index)>;
  /// The loss of the batches with their gradients, and the norm of these.
  Sums add_all(Index step, Index batches, Index tokens, Batches batch);
  /// Throws what is to be said of an update with these sums.
  [[noreturn]] void throw_diverged(Index step, Index batches, Index tokens, Batches batch, Sums sums);

  TranslationModel& model_;
  ScheduleOptions schedule_;
  double rate_factor_ = 1;
  std::unique_ptr<Optimizer> optimizer_;
  Tape tape_;
  OpProfile* profile_ = nullptr;
  AnomalyDetector detector_;
  Index bad_batch_ = -1, bad_sentence_ = -1;  // in which the detector has found something
};

}  // namespace weft

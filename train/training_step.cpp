#include "weft/train/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "weft/core/error.h"

namespace weft {
namespace {

/// The sentence that row `row` of `rows` belongs to.
Index sentence_at(Index row, const Ragged& rows) {
  const auto& begins = rows.offsets();
  return std::upper_bound(begins.begin(), begins.end(), row) - begins.begin() - 1;
}

/// The sentence whose row an operation's bad number is in; -1 if that is not plain. Up to there no number of another
/// sentence was bad, so it is the one to look at.
Index sentence_of(const Anomaly& anomaly, const Batch& batch) {
  if (anomaly.leaf != nullptr) return -1;
  const Index row = anomaly.element / anomaly.shape.cols();
  Index sentence = -1;
  for (const Ragged* rows : {&batch.source_rows, &batch.target_rows}) {
    if (rows->rows() != anomaly.shape.rows()) continue;
    const Index here = sentence_at(row, *rows);
    if (sentence >= 0 && sentence != here) return -1;
    sentence = here;
  }
  return sentence;
}

}  // namespace

TrainingStep::TrainingStep(TranslationModel& model)
    : model_(model),
      schedule_{model.config().schedule.name,        model.config().schedule.warmup_steps,
                model.config().training.steps,       model.config().optimizer.learning_rate,
                model.config().schedule.final_ratio, model.config().model.d_model,
                model.config().schedule.factor,      0},
      optimizer_(make_optimizer(
          {model.config().optimizer.name, model.config().optimizer.beta1, model.config().optimizer.beta2,
           model.config().optimizer.epsilon, model.config().optimizer.weight_decay, model.config().optimizer.momentum},
          model.parameters().values().size())) {
  if (model.config().training.detect_anomaly) tape_.set_detector(&detector_);
}

void TrainingStep::set_profile(OpProfile* profile) {
  profile_ = profile;
  tape_.set_profile(profile);
}

double TrainingStep::add_gradients(const Batch& batch, real factor, Index step, Index number) {
  const TrainingConfig& config = model_.config().training;
  tape_.clear();
  const Context context{.tape = &tape_,
                        .training = true,
                        .random = {static_cast<std::uint64_t>(config.seed),
                                   static_cast<std::uint64_t>(step * config.accumulate + number)}};
  if (profile_ != nullptr) profile_->start();
  const Var loss = model_.transformer().loss(
      context, {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
      {static_cast<real>(config.label_smoothing), factor, nullptr});
  const double value = static_cast<double>(loss.value().item());
  tape_.backward(loss);
  return value;
}

TrainingStep::Sums TrainingStep::add_all(Index step, Index batches, Index tokens, Batches batch) {
  ParameterSet& parameters = model_.parameters();
  parameters.reset_gradients();
  detector_.reset();
  bad_batch_ = bad_sentence_ = -1;
  double loss = 0;
  for (Index i = 0; i < batches; ++i) {
    const Batch& given = batch(i);
    loss += add_gradients(given, 1 / static_cast<real>(tokens), step, i);
    if (!detector_.found() || bad_batch_ >= 0) continue;
    bad_batch_ = i;
    bad_sentence_ = sentence_of(*detector_.found(), given);
  }
  if (profile_ != nullptr) profile_->start();
  parameters.complete_gradients();
  const Tensor gradients = parameters.gradients();
  return {loss, gradient_norm(gradients.values())};
}

void TrainingStep::throw_diverged(Index step, Index batches, Index tokens, Batches batch, Sums sums) {
  ParameterSet& parameters = model_.parameters();
  if (!detector_.found()) {  // an update depends on its number and its batches alone: the same numbers come again
    tape_.set_detector(&detector_);
    add_all(step, batches, tokens, batch);
    if (!model_.config().training.detect_anomaly) tape_.set_detector(nullptr);
  }
  const std::string headline =
      !std::isfinite(sums.loss)   ? fmt::format("the loss is {}", std::abs(sums.loss))  // a NaN may have a sign
      : !std::isfinite(sums.norm) ? fmt::format("the gradient's norm is {}", std::abs(sums.norm))
                                  : "a number is not finite, though the loss and the gradients are";
  DivergenceError error(step + 1, headline,
                        detector_.found() ? describe(*detector_.found(), parameters)
                                          : "each number by itself is finite; their sum is not");
  const Tensor values = parameters.values();
  error.skippable = first_not_finite(values.values()) < 0;
  error.batch = bad_batch_;
  error.sentence = bad_sentence_;
  throw error;
}

UpdateResult TrainingStep::run(Index step, Index batches, Index tokens, Batches batch) {
  const Sums sums = add_all(step, batches, tokens, batch);
  if (!std::isfinite(sums.loss) || !std::isfinite(sums.norm) || detector_.found()) {
    throw_diverged(step, batches, tokens, batch, sums);
  }
  if (profile_ != nullptr) profile_->other("gradient norm");
  Tensor values = model_.parameters().values();
  const Tensor gradients = model_.parameters().gradients();
  optimizer_->update(values.values(), gradients.values(), clip_scale(sums.norm, model_.config().optimizer.clip_norm),
                     rate(step), step + 1);
  if (profile_ != nullptr) profile_->other("optimizer");
  return {sums.loss, sums.norm, rate(step), tokens};
}

UpdateResult TrainingStep::run(Index step, std::span<const BatchSentences> batches) {
  Index tokens = 0;  // the loss needs those of the whole update
  for (const auto& [corpus, sentences] : batches) {
    for (const Index sentence : sentences) tokens += corpus->target.length(sentence) + 1;  // with </s>
  }
  Batch batch;
  try {
    return run(step, static_cast<Index>(batches.size()), tokens, [&](Index i) -> const Batch& {
      const auto& [corpus, sentences] = batches[static_cast<std::size_t>(i)];
      return batch = make_batch(*corpus, sentences);
    });
  } catch (DivergenceError& error) {
    error.batches.assign(batches.begin(), batches.end());
    throw;
  }
}

}  // namespace weft

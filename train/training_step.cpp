#include "weft/train/training_step.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/core/error.h"

namespace weft {

void throw_diverged(Index step, std::string_view what, double value) {
  throw Error(
      fmt::format("step {}: the {} is {}; training stopped before it could reach a checkpoint. Lower "
                  "optimizer.learning_rate, raise schedule.warmup_steps, or lower optimizer.clip_norm",
                  step, what, std::abs(value)));  // a NaN may have a sign
}

TrainingStep::TrainingStep(TranslationModel& model)
    : model_(model),
      schedule_{model.config().schedule.name,        model.config().schedule.warmup_steps,
                model.config().training.steps,       model.config().optimizer.learning_rate,
                model.config().schedule.final_ratio, model.config().model.d_model,
                model.config().schedule.factor,      0},
      optimizer_(make_optimizer(
          {model.config().optimizer.name, model.config().optimizer.beta1, model.config().optimizer.beta2,
           model.config().optimizer.epsilon, model.config().optimizer.weight_decay, model.config().optimizer.momentum},
          model.parameters().values().size())) {}

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

UpdateResult TrainingStep::run(Index step, Index batches, Index tokens, FunctionRef<const Batch&(Index)> batch) {
  ParameterSet& parameters = model_.parameters();
  parameters.reset_gradients();
  double loss = 0;
  for (Index i = 0; i < batches; ++i) loss += add_gradients(batch(i), 1 / static_cast<real>(tokens), step, i);
  if (profile_ != nullptr) profile_->start();
  parameters.complete_gradients();
  Tensor values = parameters.values();
  const Tensor gradients = parameters.gradients();
  const double norm = gradient_norm(gradients.values());
  if (!std::isfinite(loss)) throw_diverged(step + 1, "loss", loss);
  if (!std::isfinite(norm)) throw_diverged(step + 1, "gradient's norm", norm);
  if (profile_ != nullptr) profile_->other("gradient norm");
  const double rate = learning_rate(schedule_, step + 1);
  optimizer_->update(values.values(), gradients.values(), clip_scale(norm, model_.config().optimizer.clip_norm), rate,
                     step + 1);
  if (profile_ != nullptr) profile_->other("optimizer");
  return {loss, norm, rate, tokens};
}

UpdateResult TrainingStep::run_on(const Corpus& corpus, const std::vector<std::vector<Index>>& batches, Index step) {
  // Only the sentences' numbers of all batches are held at once; the loss needs the tokens of the whole update.
  Index tokens = 0;
  for (const auto& sentences : batches) {
    for (const Index sentence : sentences) tokens += corpus.target.length(sentence) + 1;  // with </s>
  }
  Batch batch;
  return run(step, static_cast<Index>(batches.size()), tokens,
             [&](Index i) -> const Batch& { return batch = make_batch(corpus, batches[static_cast<std::size_t>(i)]); });
}

}  // namespace weft

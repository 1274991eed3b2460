#include "weft/train/time_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "weft/core/clock.h"
#include "weft/optim/moving_average.h"
#include "weft/train/config_table.h"
#include "weft/train/evaluate.h"
#include "weft/train/metrics.h"
#include "weft/train/text_format.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

double seconds_of(Index updates, const Pace& pace, Index validate_every) {
  const double validations = std::ceil(static_cast<double>(updates) / static_cast<double>(validate_every));
  return static_cast<double>(updates) * pace.update_seconds + validations * pace.validation_seconds;
}

}  // namespace

double measure_update(TranslationModel& model, const Corpus& corpus, double seconds) {
  constexpr Index kLeast = 3, kMost = 2000;
  constexpr double kMostOfFirst = 5;  // times `seconds`: a longer update is not made again
  const Tensor values = model.parameters().values();
  const TrainingConfig& config = model.config().training;
  TrainingStep step(model);
  step.set_rate_factor(0);  // so that the parameters stay as they are, without a copy of them
  std::optional<MovingAverage> average;
  if (config.ema_decay > 0) average.emplace(config.ema_decay, values.values());
  const BatchPlan plan(corpus, config.batch_tokens, static_cast<std::uint64_t>(config.seed));
  const auto epoch = plan.epoch(0);
  const std::shared_ptr<const Corpus> borrowed(std::shared_ptr<const Corpus>(), &corpus);
  std::size_t next = 0;
  double began = now(), first = 0;
  Index done = 0;
  const auto goes_on = [&] {
    if (done == 0) return true;
    return first <= kMostOfFirst * seconds && (done < kLeast || (done < kMost && now() - began < seconds));
  };
  for (; goes_on(); ++done) {
    std::vector<BatchSentences> batches;
    for (Index i = 0; i < config.accumulate; ++i) batches.push_back({borrowed, epoch[next++ % epoch.size()]});
    try {
      step.run(done, batches);
    } catch (const DivergenceError&) {
      break;  // the run itself will say so, and do what its configuration asks for
    }
    if (average) average->update(values.values(), done + 1);
    if (done > 0) continue;
    first = now() - began;  // it takes memory from the heap and wakes threads: not counted if there are others
    began = now();
  }
  return done == 1 ? first : (now() - began) / static_cast<double>(std::max<Index>(1, done - 1));
}

double measure_epoch(const TranslationModel& model, const std::function<Corpus(Index epoch)>& text_of_epoch) {
  if (!text_of_epoch) return 0;
  const double began = now();
  const Corpus corpus = text_of_epoch(0);
  const TrainingConfig& config = model.config().training;
  const BatchPlan plan(corpus, config.batch_tokens, static_cast<std::uint64_t>(config.seed));
  return (now() - began) * static_cast<double>(config.accumulate) / static_cast<double>(plan.epoch(0).size());
}

double measure_validation(TranslationModel& model, const Corpus& valid, const ParallelText& lines) {
  // What a validation saves is up to five numbers for each parameter; a plain disk, asked to be sure, is not fast.
  constexpr double kFileSeconds = 0.01, kDiskNumbers = 5e7;
  const double began = now();
  const DecodingConfig& decoding = model.config().decoding;
  evaluate_loss(model, valid, model.config().training.batch_tokens);
  SearchOptions greedy = search_options(decoding);
  greedy.beam = 1;
  // A model that has not learned to end a sentence writes on; here it may write about as much as one that has.
  greedy.max_length_ratio = std::min(greedy.max_length_ratio, 1.25);
  try {
    evaluate_translations(model, lines.source, std::span(&lines.target, 1), make_metrics("bleu,chrf", BleuOptions{}),
                          greedy, decoding.batch_tokens);
  } catch (const NotANumberError&) {  // the run itself will say so
  }
  return now() - began + 2 * kFileSeconds + 5 * static_cast<double>(model.parameters().count()) / kDiskNumbers;
}

Index updates_within(double seconds, const Pace& pace, Index validate_every, Index most) {
  Index fits = 1, fails = most + 1;  // the time grows with the number
  while (fails - fits > 1) {
    const Index middle = fits + (fails - fits) / 2;
    (seconds_of(middle, pace, validate_every) <= seconds ? fits : fails) = middle;
  }
  return fits;
}

std::string choose_steps(TranslationModel& model, Config& config, const Corpus& corpus, double epoch_share,
                         double validation_seconds, double began) {
  constexpr double kMargin = 0.05;  // for others on this computer
  constexpr double kMostMeasured = 15;
  TrainingConfig& training = config.training;
  const double seconds = 60 * training.minutes;
  const Pace pace{measure_update(model, corpus, std::min(kMostMeasured, seconds / 50)) + epoch_share,
                  validation_seconds};
  const double left = seconds - (now() - began);
  training.steps = updates_within((1 - kMargin) * left, pace, training.validate_every, kLargestInteger);
  model.set_training(training);
  std::string line = fmt::format(
      "time budget      {:g} minutes: {} updates, at {:.3g}s each and {:.3g}s a validation; the same run without the "
      "clock: --minutes 0 --set training.steps={}",
      training.minutes, format_count(training.steps), pace.update_seconds, pace.validation_seconds, training.steps);
  if (2 * config.schedule.warmup_steps > training.steps) {
    line +=
        fmt::format("\n  the warm-up alone takes {} updates; a schedule.warmup_steps of {} would suit the time better",
                    format_count(config.schedule.warmup_steps), std::max<Index>(1, training.steps / 10));
  }
  const Index wanted = std::max<Index>(training.keep_best, 2),
              interval = std::max<Index>(1, training.steps / (2 * wanted));
  if (training.steps < wanted * training.validate_every) {
    line +=
        fmt::format("\n  that is less than {} validations; a training.validate_every of {} would suit the time better",
                    wanted, interval);
  }
  return line;
}

}  // namespace weft

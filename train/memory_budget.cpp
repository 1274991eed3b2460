#include "weft/train/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/train/config_table.h"
#include "weft/train/memory_refusal.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

/// Computes with one thread for as long as it lives: each further one takes a
/// little memory of its own, now and then.
class OneThread {
 public:
  OneThread() : before_(threads()) { set_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { set_threads(before_); }

 private:
  int before_;
};

/// A process that trains on a text, without what its updates take.
MemoryForecast without_work(TranslationModel& model, const Corpus& corpus, const Corpus& valid, Index batch_tokens,
                            std::span<const std::string> references) {
  const Config& config = model.config();
  MemoryForecast forecast;
  forecast.state = state_bytes(config.training, config.optimizer, model.parameters().size());
  forecast.validation = validation_bytes(model, valid, references);
  forecast.text = kProgramBytes + held_text_bytes(model, corpus) +
                  text_bytes(model, corpus, std::numeric_limits<double>::infinity(), batch_tokens);
  return forecast;
}

/// What an update takes in tensors, with all that is held meanwhile.
struct Measured {
  BatchSize batch;
  Index rows = 0;  // of the batch
  double bytes = 0;
};

}  // namespace

std::optional<Index> parse_bytes(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  double factor = unit.empty() || unit == "B" ? 1 : 0;
  double decimal = 1, binary = 1;
  for (const char* letter : {"K", "M", "G", "T"}) {
    decimal *= 1000, binary *= 1024;
    const std::string prefix(letter);
    if (unit == prefix + "B") factor = decimal;
    if (unit == prefix || unit == prefix + "iB") factor = binary;
  }
  const double bytes = number * factor;
  if (!(bytes >= 1 && bytes <= 1e18)) return std::nullopt;
  return static_cast<Index>(bytes);
}

Index tensors_within(TranslationModel& model, const Corpus& corpus, const Corpus& valid, Index batch_tokens,
                     Index budget, std::span<const std::string> references) {
  const MemoryForecast forecast = without_work(model, corpus, valid, batch_tokens, references);
  return forecast.state + static_cast<Index>(forecast.room_for_work(budget));
}

Index batch_tokens_within(TranslationModel& model, const Corpus& corpus, const Corpus& valid, Index budget,
                          std::span<const std::string> references) {
  const OneThread one_thread;
  const TrainingConfig& config = model.config().training;
  const Index parameters = model.parameters().values().size();
  TrainingStep step(model);
  const Tensor average = config.ema_decay > 0 ? Tensor::zeros({parameters}) : Tensor();
  const auto within = [&](Index batch_tokens) {
    return static_cast<double>(tensors_within(model, corpus, valid, batch_tokens, budget, references));
  };
  const double tensors = within(1);
  // The budget has room for what the pool will keep, and it keeps nothing yet: enough where the line says too little.
  constexpr double kTooLarge = 1.1;
  const auto measured = [&](Index batch_tokens) -> Measured {
    const std::vector<BatchSize> batches = training_batches(model, corpus, batch_tokens);
    // Blocks that the pool keeps may be larger than what is asked for next:
    // without them each measurement is like the first.
    release_unused_memory();
    const auto held = static_cast<double>(memory_statistics().current_bytes);
    const double room = kTooLarge * tensors - held;
    const BatchSize largest = largest_batch(model, step, batches, room);
    const double foreseen = held + forecast_update(model, step, largest, room).at(largest.rows());
    release_unused_memory();
    const double text = tensors - within(batch_tokens);  // an update of larger batches spans more drawn epochs
    if (foreseen + text > kTooLarge * tensors) return {largest, largest.rows(), foreseen + text};
    return {largest, largest.rows(), held + update_peak(model, step, largest) + text};
  };
  const Index pairs = corpus.source.sentences();
  const Index all = corpus.source.rows.rows() + corpus.target.rows.rows() + 2 * pairs;  // as BatchPlan counts
  Index fits = 1, fails = std::min(all, kLargestInteger) + 1;
  const Measured least = measured(fits);
  if (least.bytes > tensors) {
    MemoryForecast needed = without_work(model, corpus, valid, fits, references);
    const double work = std::max(0.0, least.bytes - static_cast<double>(needed.state));
    needed.update = forecast_update(model, step, least.batch, work);
    needed.update.fixed = std::max(0.0, work - needed.update.row * static_cast<double>(least.rows));
    needed.largest_rows = needed.longest_rows = least.rows;
    throw ConfigError(fmt::format(
        "training.memory is {}; the program, the text, the model, its optimizer and its longest pair alone take {}; {}",
        format_bytes(budget), format_bytes(needed.to_come()), mend_of_least(needed, model.config(), budget)));
  }
  constexpr Index kGrowth = 8;  // as far as forecast_update looks ahead
  Index probe = std::min(2 * least.rows, fails - 1);
  double row = 1;
  while (fails - fits > std::max<Index>(1, fits / 50)) {
    const Measured now = measured(probe);
    if (now.rows > least.rows && now.bytes > least.bytes) {
      row = (now.bytes - least.bytes) / static_cast<double>(now.rows - least.rows);
    }
    (now.bytes <= tensors ? fits : fails) = probe;
    // The memory is nearly a line, in steps of the pool's sizes: go where the line meets the budget, but on by a little
    // at least, and where that leads beyond what has failed, into the middle.
    const double guess = static_cast<double>(least.rows) + (tensors - least.bytes) / row;
    probe = std::max(static_cast<Index>(std::min(guess, static_cast<double>(std::min(fails, kGrowth * probe)))),
                     fits + fits / 25 + 1);
    if (probe >= fails) probe = fits + (fails - fits) / 2;
  }
  release_unused_memory();
  return fits;
}

}  // namespace weft

#include "weft/train/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/train/config_table.h"
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

/// A process that trains on a text, without its tensors.
MemoryForecast without_tensors(const Corpus& corpus, const DataConfig& config) {
  MemoryForecast forecast;
  forecast.text = kProgramBytes + corpus_bytes(corpus) + text_bytes(corpus, config);
  return forecast;
}

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

Index peak_memory(TranslationModel& model, TrainingStep& step, const Corpus& corpus,
                  const std::vector<std::vector<Index>>& batches) {
  const Batch batch = make_batch(corpus, largest_batch(corpus, batches));
  reset_peak_memory();
  step.add_gradients(batch, 1 / static_cast<real>(batch.target_rows.rows()), 0, 0);
  model.parameters().reset_gradients();
  return memory_statistics().peak_bytes;
}

Index tensors_within(const Corpus& corpus, const DataConfig& config, Index budget) {
  return static_cast<Index>(without_tensors(corpus, config).room_for_work(budget));
}

Index batch_tokens_within(TranslationModel& model, const Corpus& corpus, Index budget) {
  const OneThread one_thread;
  const TrainingConfig& config = model.config().training;
  const Index parameters = model.parameters().values().size();
  TrainingStep step(model);
  const Tensor average = config.ema_decay > 0 ? Tensor::zeros({parameters}) : Tensor();
  const auto measured = [&](Index batch_tokens) {
    // Blocks that the pool keeps may be larger than what is asked for next:
    // without them each measurement is like the first.
    release_unused_memory();
    const BatchPlan plan(corpus, batch_tokens, static_cast<std::uint64_t>(config.seed));
    return peak_memory(model, step, corpus, plan.epoch(0));
  };
  const Index pairs = corpus.source.sentences();
  const Index all = corpus.source.rows.rows() + corpus.target.rows.rows() + 2 * pairs;  // as BatchPlan counts
  Index fits = 1, fails = std::min(all, kLargestInteger) + 1;
  const Index least = measured(fits), tensors = tensors_within(corpus, model.config().data, budget);
  if (least > tensors) {
    MemoryForecast needed = without_tensors(corpus, model.config().data);
    needed.state = least;
    throw ConfigError(fmt::format(
        "training.memory is {}; the program, the model, its optimizer and its longest pair alone take {}; allow "
        "more, or lower model.d_model or data.max_length",
        format_bytes(budget), format_bytes(needed.to_come())));
  }
  Index probe = std::min<Index>(config.batch_tokens, fails - 1);
  double per_token = 1;
  while (fails - fits > std::max<Index>(1, fits / 50)) {
    const Index bytes = measured(probe);
    if (bytes > least) per_token = static_cast<double>(bytes - least) / static_cast<double>(probe - 1);
    (bytes <= tensors ? fits : fails) = probe;
    // The memory is nearly a line, in steps of the pool's sizes: go where the line meets the budget, but on by a little at
    // least, and where that leads beyond what has failed, into the middle.
    const double guess = std::min(static_cast<double>(tensors - least) / per_token, static_cast<double>(fails));
    probe = std::max(static_cast<Index>(guess), fits + fits / 25 + 1);
    if (probe >= fails) probe = fits + (fails - fits) / 2;
  }
  release_unused_memory();
  return fits;
}

}  // namespace weft

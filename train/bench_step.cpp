#include "weft/train/bench_step.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "weft/core/clock.h"
#include "weft/core/flops.h"
#include "weft/core/memory.h"
#include "weft/train/bench_batches.h"
#include "weft/train/median.h"
#include "weft/train/training_step.h"

namespace weft {
namespace {

Index peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<Index>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

Vocabulary made_up_words(Index size) {
  std::vector<std::string> tokens(kSpecialTokens.begin(), kSpecialTokens.end());
  while (static_cast<Index>(tokens.size()) < size) tokens.push_back(fmt::format("w{}", tokens.size()));
  return Vocabulary::from_tokens(std::move(tokens));
}

}  // namespace

std::unique_ptr<TranslationModel> make_bench_model(const Config& config, const Registry& registry) {
  const Vocabulary words = made_up_words(config.bench.vocabulary);
  Config without_text = config;
  without_text.data.tokenizer = DataConfig{}.tokenizer;  // there is no text to learn subwords from
  return std::make_unique<TranslationModel>(std::move(without_text), words, words, registry);
}

BenchStepResult bench_step(TranslationModel& model, const BenchStepOptions& options) {
  constexpr double kPeakSeconds = 0.3;
  const std::vector<Batch> batches = make_bench_batches(model.config());
  const auto count = static_cast<double>(batches.size());
  TrainingStep step(model);
  OpProfile profile;
  Index update = 0;
  const auto pass = [&] {
    for (const Batch& batch : batches) {
      step.run(update++, 1, batch.target_rows.rows(), [&](Index) -> const Batch& { return batch; });
    }
  };
  BenchStepResult result;
  result.batches = static_cast<Index>(batches.size());
  for (const Batch& batch : batches) result.target_tokens += static_cast<double>(batch.target_rows.rows()) / count;

  const double peak = measure_peak_flops(kPeakSeconds);
  pass();  // warms up: memory comes from the heap, threads start
  const Index flops = counted_flops();
  double began = now();
  pass();
  result.step_flops = static_cast<double>(counted_flops() - flops) / count;
  const auto passes = std::max<Index>(1, static_cast<Index>(options.round_seconds / (now() - began)));
  const double steps = static_cast<double>(passes) * count;

  if (options.profile) step.set_profile(&profile);
  reset_peak_memory();
  const Index allocations = memory_statistics().heap_allocations;
  std::vector<double> seconds;
  for (Index round = 0; round < options.rounds; ++round) {
    began = now();
    for (Index i = 0; i < passes; ++i) pass();
    seconds.push_back((now() - began) / steps);
  }
  const double all_steps = steps * static_cast<double>(options.rounds);
  result.step_seconds = median(seconds);
  result.heap_allocations = static_cast<double>(memory_statistics().heap_allocations - allocations) / all_steps;
  result.peak_bytes = memory_statistics().peak_bytes;
  result.peak_resident_bytes = peak_resident_bytes();
  result.peak_flops = std::max(peak, measure_peak_flops(kPeakSeconds));
  result.profile = profile.rows();
  for (OpProfile::Row& row : result.profile) {
    row.calls /= all_steps;
    row.forward /= all_steps;
    row.backward /= all_steps;
  }
  return result;
}

}  // namespace weft

#include "weft/train/bench_step.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/flops.h"
#include "weft/core/memory.h"
#include "weft/train/bench_batches.h"
#include "weft/train/checkpoint.h"
#include "weft/train/training_step.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

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

/// Sentences cut out of the tokens of a batch.
Json sentences(const std::vector<TokenId>& tokens, const Ragged& rows) {
  Json all = Json::array();
  for (Index s = 0; s < rows.sequences(); ++s) {
    all.push_back(std::vector<TokenId>(tokens.begin() + rows.begin(s), tokens.begin() + rows.end(s)));
  }
  return all;
}

}  // namespace

std::unique_ptr<TranslationModel> make_bench_model(const Config& config, const Registry& registry) {
  const Vocabulary words = made_up_words(config.bench.vocabulary);
  return std::make_unique<TranslationModel>(config, words, words, registry);
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

void export_bench_step(TranslationModel& model, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Json work{{"config", Json::parse(config_json(model.config()))},
            {"source_vocabulary", model.source_vocabulary().size()},
            {"target_vocabulary", model.target_vocabulary().size()},
            {"parameters", model.parameters().count()},
            {"batches", Json::array()},
            {"losses", Json::array()}};
  for (const Batch& batch : make_bench_batches(model.config())) {
    work["batches"].push_back({{"source", sentences(batch.source, batch.source_rows)},
                               {"decoder_input", sentences(batch.decoder_input, batch.target_rows)},
                               {"target", sentences(batch.target, batch.target_rows)}});
    const auto smoothing = static_cast<real>(model.config().training.label_smoothing);
    const Var loss = model.transformer().loss(
        Context{}, {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
        {smoothing, 1 / static_cast<real>(batch.target_rows.rows()), nullptr});
    work["losses"].push_back(loss.value().item());
  }
  write_file_atomically(folder / "work.json", [&](FileWriter& file) { file.write(work.dump() + "\n"); });
  save_checkpoint(folder / "model.safetensors", model, {}, nullptr);
}

}  // namespace weft

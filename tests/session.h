// Sessions of training in a run folder, one after the other, as the command line makes them.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tiny_run.h"

namespace weft {

inline constexpr int kNoStop = 0, kStopAtOnce = 1;

/// Training in a folder as the command line does it: from last.safetensors if it is there.
class Session {
 public:
  Session(const std::filesystem::path& folder, const Config& config, const ParallelText& train,
          const ParallelText& valid, const Registry& registry = standard_layers())
      : progress_(stdout, true) {
    std::filesystem::create_directories(folder);
    if (std::filesystem::exists(folder / "last.safetensors")) {
      checkpoint_ = load_checkpoint(folder / "last.safetensors", registry);
      // The model of a checkpoint has the configuration that it was made with; a test may want another.
      auto model = tiny_model(config, registry);
      Tensor values = model->parameters().values();
      const Tensor loaded = checkpoint_.model->parameters().values();
      std::copy(loaded.values().begin(), loaded.values().end(), values.values().begin());
      checkpoint_.model = std::move(model);
    } else {
      checkpoint_.model = tiny_model(config, registry);
    }
    trainer_ = std::make_unique<Trainer>(*checkpoint_.model, checkpoint_.state,
                                         tiny_data(*checkpoint_.model, train, valid), folder, progress_);
  }
  Session(const std::filesystem::path& folder, const Config& config, const Registry& registry = standard_layers())
      : Session(folder, config, letters(60, 5), letters(10, 6), registry) {}

  TrainingEnd finish() { return trainer_->run(kNoStop); }
  /// Makes one update and saves, as after a signal.
  TrainingEnd one_update() { return trainer_->run(kStopAtOnce); }
  Trainer& trainer() { return *trainer_; }
  TranslationModel& model() { return *checkpoint_.model; }
  std::vector<real> parameters() {
    const Tensor values = checkpoint_.model->parameters().values();
    return {values.values().begin(), values.values().end()};
  }

 private:
  Progress progress_;
  Checkpoint checkpoint_;
  std::unique_ptr<Trainer> trainer_;
};

/// A log without what depends on time and memory.
inline std::string log_without_times(const std::filesystem::path& folder) {
  const RunLogEntries entries = read_run_log((folder / "log.jsonl").string());
  std::string text;
  char line[300];
  for (const StepEntry& e : entries.steps) {
    std::snprintf(line, sizeof line, "%lld %lld %.17g %.17g %.17g\n", static_cast<long long>(e.step),
                  static_cast<long long>(e.epoch), e.loss, e.learning_rate, e.grad_norm);
    text += line;
  }
  for (const ValidationEntry& e : entries.validations) {
    std::snprintf(line, sizeof line, "%lld: %.17g %.17g %.17g %.17g %.17g %.17g\n", static_cast<long long>(e.step),
                  e.loss, e.perplexity, e.token_accuracy, e.exact_match, e.bleu, e.chrf);
    text += line;
  }
  for (const EventEntry& e : entries.events) {
    text += std::to_string(e.step) + " " + e.event + " " + std::to_string(e.count) + " " + e.text + "\n";
  }
  return text;
}

}  // namespace weft

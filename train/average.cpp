#include "weft/train/average.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/validation_history.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// What keeps two checkpoints from being of one model; empty if nothing does.
std::string difference(TranslationModel& one, TranslationModel& other) {
  std::string text;
  for (const std::string& changed : config_differences(one.config(), other.config())) {
    const bool counts = changed.starts_with("model.") || changed.starts_with("data.tokenizer:") ||
                        changed.starts_with("data.lowercase:");
    if (counts) text += (text.empty() ? "" : ", ") + changed;
  }
  if (!text.empty()) return text;
  if (one.source_vocabulary().content_hash() != other.source_vocabulary().content_hash())
    return "another source vocabulary";
  if (one.target_vocabulary().content_hash() != other.target_vocabulary().content_hash())
    return "another target vocabulary";
  const auto alike = [](const ParameterEntry& a, const ParameterEntry& b) {
    return a.name == b.name && a.shape == b.shape && a.offset == b.offset;
  };
  const auto &a = one.parameters().entries(), &b = other.parameters().entries();
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), alike) ? "" : "other parameters";
}

}  // namespace

Checkpoint average_checkpoints(const std::vector<fs::path>& paths, const Registry& registry) {
  Checkpoint result = load_checkpoint(paths.back(), registry);
  Tensor values = result.model->parameters().values();
  std::vector<double> mean(values.values().begin(), values.values().end());
  double count = 1;
  for (auto path = paths.begin(); path + 1 != paths.end(); ++path) {
    const Checkpoint other = load_checkpoint(*path, registry);
    if (const std::string text = difference(*result.model, *other.model); !text.empty()) {
      throw CheckpointError(fmt::format("{}: cannot be averaged with {}, it has {}; average checkpoints of one model",
                                        path->string(), paths.back().string(), text));
    }
    ++count;
    const Tensor others = other.model->parameters().values();
    // A running mean: exact for equal numbers, also where a sum of them is not.
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += (double{others.values()[i]} - mean[i]) / count;
  }
  std::transform(mean.begin(), mean.end(), values.values().begin(), [](double v) { return static_cast<real>(v); });
  return result;
}

std::vector<fs::path> validation_checkpoints(const fs::path& run, bool best, Index count, const Registry& registry) {
  const Checkpoint last = load_checkpoint(run / "last.safetensors", registry);
  const TrainingConfig& training = last.model->config().training;
  const auto& validations = last.state.validations;
  if (count > static_cast<Index>(validations.size())) {
    throw ConfigError(
        fmt::format("{}: {} validations are asked for, the run has made {}; ask for as many, or have it "
                    "validate more often (training.validate_every)",
                    run.string(), count, validations.size()));
  }
  std::vector<Index> steps;
  if (best) {
    steps = best_steps(validations, training.best_metric, count);
    std::reverse(steps.begin(), steps.end());
  } else {
    for (const ValidationEntry& v : std::span(validations).last(static_cast<std::size_t>(count)))
      steps.push_back(v.step);
  }
  std::vector<fs::path> paths;
  for (const Index step : steps) {
    fs::path path = step_checkpoint(run, step);
    if (!is_there(path) && step == last.state.best_step) path = run / "best.safetensors";
    if (!is_there(path)) {
      throw ConfigError(
          fmt::format("{}: there is no such file; the run keeps the best {} and the last {} of its validations (set "
                      "training.keep_best or training.keep_last)",
                      path.string(), training.keep_best, training.keep_last));
    }
    if (const Index found = load_state(path).step; found != step) {  // a killed process saved it, and no last after it
      throw ConfigError(
          fmt::format("{}: holds step {}, and is to be that of the validation at step {}; have weft train go "
                      "on with the run, which mends it",
                      path.string(), found, step));
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace weft

#include "weft/train/average.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/core/function_ref.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/validation_history.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The average of the checkpoints of these paths, that `load` loads by their numbers.
Checkpoint mean_of(const std::vector<fs::path>& paths, FunctionRef<Checkpoint(std::size_t)> load) {
  Checkpoint result = load(paths.size() - 1);
  Tensor values = result.model->parameters().values();
  std::vector<double> mean(values.values().begin(), values.values().end());
  double count = 1;
  for (std::size_t path = 0; path + 1 < paths.size(); ++path) {
    const Checkpoint other = load(path);
    if (const std::string text = model_difference(*result.model, *other.model); !text.empty()) {
      throw CheckpointError(fmt::format("{}: cannot be averaged with {}, it has {}; average checkpoints of one model",
                                        paths[path].string(), paths.back().string(), text));
    }
    ++count;
    const Tensor others = other.model->parameters().values();
    // A running mean: exact for equal numbers, also where a sum of them is not.
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += (double{others.values()[i]} - mean[i]) / count;
  }
  std::transform(mean.begin(), mean.end(), values.values().begin(), [](double v) { return static_cast<real>(v); });
  return result;
}

/// A checkpoint of a run is not what its last.safetensors says, as while the run is at work.
class MovedOn : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Acts again, a few times, if a run moves on meanwhile.
template <class Action>
auto until_it_rests(Action action) {
  constexpr int kMostTries = 5;
  for (int tries = 1;; ++tries) {
    try {
      return action();
    } catch (const MovedOn&) {
      if (tries == kMostTries) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

Index saved_step(const Checkpoint& checkpoint) { return checkpoint.state.step; }
Index saved_step(const TrainingState& state) { return state.step; }

/// What `load` finds of the validation at a step in its checkpoint.
template <class Load>
auto of_step(const fs::path& path, Index step, Load load) {
  auto found = [&] {
    try {
      return load(path);
    } catch (const CheckpointError&) {
      if (is_there(path)) throw;
      throw MovedOn(
          fmt::format("{}: is gone, though the run keeps it; if weft train is at work there, try again in a "
                      "moment, else average those that are there",
                      path.string()));
    }
  }();
  if (saved_step(found) != step) {  // a killed process saved it, and no last after it
    throw MovedOn(
        fmt::format("{}: holds step {}, and is to be that of the validation at step {}; if weft train is at "
                    "work there, try again in a moment, else have it go on with the run, which mends it",
                    path.string(), saved_step(found), step));
  }
  return found;
}

struct ChosenValidations {
  std::vector<fs::path> paths;
  std::vector<Index> steps;
};

ChosenValidations choose_validations(const fs::path& run, bool best, Index count, const Registry& registry) {
  const Checkpoint last = load_checkpoint(run / "last.safetensors", registry);
  const TrainingConfig& training = last.model->config().training;
  const auto& validations = last.state.validations;
  if (count > static_cast<Index>(validations.size())) {
    throw ConfigError(
        fmt::format("{}: {} validations are asked for, the run has made {}; ask for as many, or have it "
                    "validate more often (training.validate_every)",
                    run.string(), count, validations.size()));
  }
  ChosenValidations chosen;
  if (best) {
    chosen.steps = best_steps(validations, training.best_metric, count);
    std::reverse(chosen.steps.begin(), chosen.steps.end());
  } else {
    for (const ValidationEntry& v : std::span(validations).last(static_cast<std::size_t>(count)))
      chosen.steps.push_back(v.step);
  }
  const std::set<Index> kept = kept_steps(validations, training);
  for (const Index step : chosen.steps) {
    fs::path path = step_checkpoint(run, step);
    const bool is_best = step == last.state.best_step;
    if (is_best && !is_there(path)) path = run / "best.safetensors";
    if (!is_best && kept.count(step) == 0 && !is_there(path)) {
      throw ConfigError(
          fmt::format("{}: there is no such file; the run keeps the best {} and the last {} of its validations (set "
                      "training.keep_best or training.keep_last)",
                      path.string(), training.keep_best, training.keep_last));
    }
    (void)of_step(path, step, load_state);
    chosen.paths.push_back(std::move(path));
  }
  return chosen;
}

}  // namespace

std::string model_difference(TranslationModel& one, TranslationModel& other) {
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

Checkpoint average_checkpoints(const std::vector<fs::path>& paths, const Registry& registry) {
  return mean_of(paths, [&](std::size_t i) { return load_checkpoint(paths[i], registry); });
}

std::vector<fs::path> validation_checkpoints(const fs::path& run, bool best, Index count, const Registry& registry) {
  return until_it_rests([&] { return choose_validations(run, best, count, registry).paths; });
}

RunAverage average_run(const fs::path& run, bool best, Index count, const Registry& registry) {
  return until_it_rests([&] {
    ChosenValidations chosen = choose_validations(run, best, count, registry);
    Checkpoint mean = mean_of(chosen.paths, [&](std::size_t i) {
      return of_step(chosen.paths[i], chosen.steps[i],
                     [&](const fs::path& path) { return load_checkpoint(path, registry); });
    });
    return RunAverage{std::move(mean), std::move(chosen.paths)};
  });
}

}  // namespace weft

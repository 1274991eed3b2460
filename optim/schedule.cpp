#include "weft/optim/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/core/error.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 6> kSchedules{"constant", "noam", "inverse_sqrt", "cosine", "linear", "plateau"};
constexpr double kPi = 3.14159265358979323846;

}  // namespace

std::span<const std::string_view> schedule_names() { return kSchedules; }

double learning_rate(const ScheduleOptions& options, Index update) {
  if (std::find(kSchedules.begin(), kSchedules.end(), options.name) == kSchedules.end()) {
    throw ConfigError(fmt::format("\"{}\" is not a learning rate schedule; choose one of {}", options.name,
                                  fmt::join(kSchedules, ", ")));
  }
  const auto n = static_cast<double>(std::max<Index>(update, 1));
  const auto warmup = static_cast<double>(options.warmup_steps);
  const auto steps = static_cast<double>(options.steps);
  if (options.name == "noam") {
    const double scale = options.peak / std::sqrt(static_cast<double>(options.d_model));
    return n < warmup ? scale * n / (warmup * std::sqrt(warmup)) : scale / std::sqrt(n);
  }
  if (options.name == "plateau") {
    const double share = std::pow(options.factor, static_cast<double>(options.plateaus));
    return options.peak * std::max(options.final_ratio, share) * (n < warmup ? n / warmup : 1.0);
  }
  if (n < warmup) return options.peak * n / warmup;
  if (options.name == "constant") return options.peak;
  if (options.name == "inverse_sqrt") return options.peak * std::sqrt(std::max(warmup, 1.0) / n);
  // Asked this way, a schedule whose warm-up fills all steps is at its end at once, without a division by 0.
  const double progress = n < steps ? (n - warmup) / (steps - warmup) : 1.0;
  const double left = options.name == "cosine" ? (1.0 + std::cos(kPi * progress)) / 2.0 : 1.0 - progress;
  return options.peak * (options.final_ratio + (1.0 - options.final_ratio) * left);
}

}  // namespace weft

#include "weft/train/validation_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {

double score_of(const ValidationEntry& validation, const std::string& metric) {
  return metric == "bleu"             ? validation.bleu
         : metric == "chrf"           ? validation.chrf
         : metric == "exact_match"    ? validation.exact_match
         : metric == "token_accuracy" ? validation.token_accuracy
                                      : validation.loss;
}

bool is_better(const std::string& metric, double one, double other) {
  if (std::isnan(one) || std::isnan(other)) return !std::isnan(one) && std::isnan(other);
  return metric == "loss" ? one < other : one > other;
}

std::vector<Index> best_steps(std::span<const ValidationEntry> validations, const std::string& metric, Index count) {
  std::vector<ValidationEntry> sorted(validations.rbegin(), validations.rend());
  std::stable_sort(sorted.begin(), sorted.end(), [&](const ValidationEntry& a, const ValidationEntry& b) {
    return is_better(metric, score_of(a, metric), score_of(b, metric));
  });
  std::vector<Index> steps;
  for (const ValidationEntry& validation : sorted) {
    if (static_cast<Index>(steps.size()) == count) break;
    steps.push_back(validation.step);
  }
  return steps;
}

Index validations_without_better(std::span<const ValidationEntry> validations, const std::string& metric) {
  double best = std::numeric_limits<double>::quiet_NaN();
  Index since = 0;
  for (const ValidationEntry& validation : validations) {
    const double score = score_of(validation, metric);
    const bool better = is_better(metric, score, best);
    since = better ? 0 : since + 1;
    if (better) best = score;
  }
  return since;
}

Index plateaus(std::span<const ValidationEntry> validations, const std::string& metric, Index patience) {
  double best = std::numeric_limits<double>::quiet_NaN();
  Index since = 0, count = 0;
  for (const ValidationEntry& validation : validations) {
    const double score = score_of(validation, metric);
    const bool better = is_better(metric, score, best);
    since = better ? 0 : since + 1;
    if (better) best = score;
    if (since < patience) continue;
    ++count;
    since = 0;
  }
  return count;
}

}  // namespace weft

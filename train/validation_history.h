// What the validations of a run say together: which were the best, how long ago, and what follows from that. All are pure
// functions of the results so far, so a run that goes on after a stop decides as one that never stopped.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/train/run_log.h"

namespace weft {

/// The result that a metric names: loss, bleu, chrf, exact_match or token_accuracy.
double score_of(const ValidationEntry& validation, const std::string& metric);

/// Whether one result of a metric is better than another: the smaller loss, the larger of the others; any number is better
/// than NaN.
bool is_better(const std::string& metric, double one, double other);

/// The steps of the best `count` validations, or of all if there are fewer, best first; of equal ones the last first.
std::vector<Index> best_steps(std::span<const ValidationEntry> validations, const std::string& metric, Index count);

/// How many validations have come after the last one that was better than all before it.
Index validations_without_better(std::span<const ValidationEntry> validations, const std::string& metric);

/// How often `patience` validations in a row, counted anew each time, were no better than the best before them.
Index plateaus(std::span<const ValidationEntry> validations, const std::string& metric, Index patience);

}  // namespace weft

// Whether the scores of two outputs differ by more than chance: paired bootstrap resampling. Results depend on
// the counts, the number of resamples and the seed alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/train/metric.h"

namespace weft {

/// What resampling says of one output.
struct BootstrapResult {
  double score = 0;               ///< of the text as it is
  double mean = 0;                ///< of the scores of the resamples
  double half_width = 0;          ///< of the interval that holds 95 % of them
  std::optional<double> p_value;  ///< of the difference to the baseline, which has none itself
};

/// Compares outputs of the same text with the first of them, the baseline, as sacreBLEU's --paired-bs does.
///
/// A resample draws as many lines as there are, with replacement, the same ones for all outputs and metrics.
/// The interval lies between the scores of which a fortieth are lower and a fortieth higher. With d the
/// absolute difference to the baseline's score and d_i that of resample i, the p-value is
/// (1 + the number of i with d_i - mean(d) > d) / (1 + resamples): roughly the probability of such a
/// difference if both outputs came from the same process. One thing is not sacreBLEU's: an output whose counts
/// are the baseline's on every line has p-value 1, where the formula would give its least. Throws DataError
/// for no outputs, no lines, or unequal numbers of them. Source: Koehn 2004, "Statistical Significance Tests
/// for Machine Translation Evaluation".
std::vector<BootstrapResult> paired_bootstrap(const Metric& metric, std::span<const LineCounts> outputs,
                                              const Resampling& resampling);

}  // namespace weft

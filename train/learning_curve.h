// Learning curves of training runs as a picture: loss on the left, a score of the validations on the right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/train/run_log.h"

namespace weft {

/// A run in the picture.
struct CurveRun {
  std::string name;
  RunLogEntries entries;
};

/// What the picture shows.
struct CurveOptions {
  std::string title;
  std::string metric = "bleu";  ///< one of curve_metrics(); drawn on the right
  bool by_time = true;          ///< minutes of training along the bottom, else updates
};

/// The names that CurveOptions::metric may have.
std::vector<std::string> curve_metrics();

/// Draws runs: the loss of training (thin) and of validation (bold, with dots), and the metric, whose best
/// value stands in the legend.
/// A self-contained SVG file; pointing at a dot shows its numbers. What is not finite is left out. Throws DataError for a
/// run without entries, ConfigError for an unknown metric.
std::string learning_curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options);

}  // namespace weft

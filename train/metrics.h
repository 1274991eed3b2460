// The metrics by the names that a user gives them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "weft/train/bleu.h"
#include "weft/train/metric.h"

namespace weft {

/// Metrics in the order in which they are reported.
using Metrics = std::vector<std::unique_ptr<const Metric>>;

/// What is reported unless the user says otherwise.
inline constexpr std::string_view kUsualMetrics = "bleu,chrf";

/// Makes metrics from names between commas: "bleu", "chrf", "chrf++". The options are those of BLEU, but its
/// `lowercase` holds for all. Throws ConfigError for another name, for a name twice, and for none.
Metrics make_metrics(std::string_view names, const BleuOptions& options = {});

}  // namespace weft

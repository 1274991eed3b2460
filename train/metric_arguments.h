// The options by which verbs choose metrics, and scores as JSON: alike for all verbs.
#pragma once

#include <vector>

#include "weft/train/arguments.h"
#include "weft/train/metrics.h"

namespace weft {

/// --metric, --tokenizer, --smoothing, --smooth-value and --lowercase for the help of a verb, of which `usual`
/// is the tokenizer if none is given, in words.
std::vector<Option> metric_options(const std::string& usual);

/// The metrics that the user asks for, in BLEU with `options` where --tokenizer and the like
/// do not say otherwise. Throws ConfigError for names and values that do not exist.
Metrics metrics_of(const Arguments& arguments, BleuOptions options);

}  // namespace weft

#include "weft/train/metric_arguments.h"

#include <fmt/format.h>

#include <string>

#include "weft/core/error.h"

namespace weft {

std::vector<Option> metric_options(const std::string& usual) {
  return {
      {"metric", "NAMES", "Scores between commas: bleu, chrf, chrf++; bleu,chrf unless given."},
      {"tokenizer", "NAME",
       fmt::format("How BLEU cuts words: 13a, none, char, or zh for Chinese; {} unless given.", usual)},
      {"smoothing", "NAME", "What BLEU does about n-grams without a match: exp (unless given), floor, add-k, none."},
      {"smooth-value", "X", "Matches that floor counts (0.1 unless given), or what add-k adds (1)."},
      {"lowercase", "", "Score without regard to case."}};
}

Metrics metrics_of(const Arguments& arguments, BleuOptions options) {
  if (arguments.has("tokenizer")) options.tokenizer = bleu_tokenizer(arguments.text("tokenizer"));
  options.smoothing = bleu_smoothing(arguments.text("smoothing", "exp"));
  if (arguments.has("smooth-value")) options.smooth_value = arguments.number("smooth-value", 0, 1e9);
  options.lowercase = arguments.has("lowercase");
  std::string names;
  for (const std::string& given : arguments.all("metric")) names += (names.empty() ? "" : ",") + given;
  return make_metrics(arguments.has("metric") ? names : kUsualMetrics, options);
}

}  // namespace weft

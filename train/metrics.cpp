#include "weft/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/train/chrf.h"

namespace weft {
namespace {

std::unique_ptr<const Metric> make_metric(std::string_view name, const BleuOptions& options) {
  if (name == "bleu") return std::make_unique<Bleu>(options);
  if (name == "chrf") return std::make_unique<Chrf>(ChrfOptions{0, options.lowercase});
  if (name == "chrf++") return std::make_unique<Chrf>(ChrfOptions{2, options.lowercase});
  throw ConfigError(fmt::format("\"{}\" is not a metric; must be bleu, chrf or chrf++{}", name,
                                suggestion(name, {"bleu", "chrf", "chrf++"})));
}

}  // namespace

Metrics make_metrics(std::string_view names, const BleuOptions& options) {
  Metrics metrics;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    metrics.push_back(make_metric(names.substr(begin, end - begin), options));
    const std::string key = metrics.back()->key();
    if (std::any_of(metrics.begin(), metrics.end() - 1, [&](const auto& other) { return other->key() == key; })) {
      throw ConfigError(fmt::format("the metric {} is named twice in \"{}\"; name it once", key, names));
    }
    begin = end + 1;
  }
  return metrics;
}

}  // namespace weft

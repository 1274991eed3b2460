#include "weft/train/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace weft {
namespace {

/// Where an element of a leaf is in the flat buffer.
Index flat_place(const Leaf& leaf, Index element, ParameterSet& parameters) {
  return leaf.value.data() - parameters.values().data() + element;
}

/// The parameter that an element of the flat buffer belongs to.
const ParameterEntry& parameter_at(Index element, ParameterSet& parameters) {
  const auto& entries = parameters.entries();
  return *std::prev(std::upper_bound(entries.begin(), entries.end(), element,
                                     [](Index at, const ParameterEntry& entry) { return at < entry.offset; }));
}

}  // namespace

std::string element_name(Index element, ParameterSet& parameters) {
  const ParameterEntry& entry = parameter_at(element, parameters);
  return fmt::format("{} of parameter {} {}", element_index(entry.shape, element - entry.offset), entry.name,
                     to_string(entry.shape));
}

std::string describe(const Anomaly& anomaly, ParameterSet& parameters) {
  const bool in_parameter = anomaly.leaf != nullptr;
  const std::string number =
      fmt::format("first bad number: {}", std::isnan(anomaly.value) ? std::abs(anomaly.value) : anomaly.value);
  const std::string parameter =
      in_parameter ? element_name(flat_place(*anomaly.leaf, anomaly.element, parameters), parameters) : "";
  if (anomaly.op.empty()) return fmt::format("{} at {}, before this update began", number, parameter);
  const std::string index = element_index(anomaly.shape, anomaly.element);
  std::string near;
  if (anomaly.near != nullptr && !in_parameter) {
    near = fmt::format(", near parameter {}", parameter_at(flat_place(*anomaly.near, 0, parameters), parameters).name);
  }
  if (!anomaly.backward) {
    return fmt::format("{} at {} of the result {} of op {} (forward, number {}){}", number, index,
                       to_string(anomaly.shape), anomaly.op, anomaly.number, near);
  }
  return fmt::format("{} at {} in the gradient, from op {} (backward, number {}, result {}){}", number,
                     in_parameter ? parameter : fmt::format("{} of an argument {}", index, to_string(anomaly.shape)),
                     anomaly.op, anomaly.number, to_string(anomaly.result), near);
}

std::string divergence_advice(const Config& config) {
  std::string advice = fmt::format("Lower optimizer.learning_rate ({:g}), raise schedule.warmup_steps ({})",
                                   config.optimizer.learning_rate, config.schedule.warmup_steps);
  return advice + (config.optimizer.clip_norm > 0
                       ? fmt::format(", or lower optimizer.clip_norm ({:g})", config.optimizer.clip_norm)
                       : ", or limit gradients with optimizer.clip_norm, for example 1");
}

}  // namespace weft

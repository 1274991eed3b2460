#include "weft/autograd/anomaly.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/autograd/tape.h"

namespace weft {

Index first_not_finite(std::span<const real> values) {
  constexpr std::size_t kBlock = 4096;  // without a branch for each element
  for (std::size_t first = 0; first < values.size(); first += kBlock) {
    const std::span<const real> block = values.subspan(first, std::min(kBlock, values.size() - first));
    int bad = 0;
    for (const real value : block) bad |= std::abs(value) <= std::numeric_limits<real>::max() ? 0 : 1;
    if (bad == 0) continue;
    const auto found = std::find_if(block.begin(), block.end(), [](real value) { return !std::isfinite(value); });
    return static_cast<Index>(first) + (found - block.begin());
  }
  return -1;
}

std::string element_index(const Shape& shape, Index element) {
  std::vector<Index> indices(static_cast<std::size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) {
    indices[static_cast<std::size_t>(d)] = element % shape[d];
    element /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

void AnomalyDetector::begin() {
  last_ = nullptr;
  nearby_.clear();
}

void AnomalyDetector::watched(const Leaf& leaf) {
  last_ = &leaf;
  if (found_) return;
  const std::span<const real> values = leaf.value.values();
  const Index bad = first_not_finite(values);
  if (bad < 0) return;
  found_ = {.shape = leaf.value.shape(),
            .element = bad,
            .value = static_cast<double>(values[static_cast<std::size_t>(bad)]),
            .leaf = &leaf};
}

void AnomalyDetector::forward(std::string_view op, Index number, const Tensor& result) {
  if (found_) return;
  nearby_.resize(static_cast<std::size_t>(number), nullptr);
  nearby_.back() = last_;
  const Index bad = first_not_finite(result.values());
  if (bad < 0) return;
  found_ = {.op = std::string(op),
            .number = number,
            .result = result.shape(),
            .shape = result.shape(),
            .element = bad,
            .value = static_cast<double>(result.values()[static_cast<std::size_t>(bad)]),
            .near = last_};
}

void AnomalyDetector::backward(std::string_view op, Index number, const Shape& result, const Tensor& gradient,
                               const Leaf* leaf) {
  if (found_) return;
  const Index bad = first_not_finite(gradient.values());
  if (bad < 0) return;
  const auto place = static_cast<std::size_t>(number - 1);
  found_ = {.backward = true,
            .op = std::string(op),
            .number = number,
            .result = result,
            .shape = gradient.shape(),
            .element = bad,
            .value = static_cast<double>(gradient.values()[static_cast<std::size_t>(bad)]),
            .leaf = leaf,
            .near = place < nearby_.size() ? nearby_[place] : nullptr};
}

}  // namespace weft

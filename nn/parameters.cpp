#include "weft/nn/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/core/error.h"
#include "weft/core/random.h"

namespace weft {
namespace {

constexpr Index kAlignment = 64 / static_cast<Index>(sizeof(float));  // elements; the same offsets in float and double

void initialise(const ParameterEntry& entry, std::uint64_t seed, real* values) {
  Random random(seed, random_site(entry.name));
  for (Index i = 0; i < entry.shape.size(); ++i) {
    double value = entry.init.scale;
    if (entry.init.kind == Init::Kind::kUniform) {
      value *= 2 * random.uniform() - 1;
    } else if (entry.init.kind == Init::Kind::kNormal) {
      // Box and Muller 1958
      const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      value *= radius * std::cos(2 * std::numbers::pi * random.uniform());
    }
    values[i] = static_cast<real>(value);
  }
}

}  // namespace

Init Init::glorot(Index in, Index out) { return uniform(std::sqrt(6.0 / static_cast<double>(in + out))); }

Leaf& ParameterSet::declare(const std::vector<ParameterEntry>& parts) {
  if (values_.defined()) {
    throw ShapeError(fmt::format("[parameters] {} is declared after the parameters were used", parts.at(0).name));
  }
  const Index offset = size_;
  Index rows = 0;
  for (ParameterEntry part : parts) {
    if (!names_.insert(part.name).second) {
      throw ShapeError(fmt::format("[parameters] {} is declared twice; give the members different names", part.name));
    }
    part.offset = size_;
    size_ += part.shape.size();
    rows += part.shape.rank() == 0 ? 1 : part.shape[0];
    entries_.push_back(std::move(part));
  }
  size_ = (size_ + kAlignment - 1) / kAlignment * kAlignment;
  const Shape& first = parts.at(0).shape;
  const Shape shape = parts.size() == 1 ? first : first.rank() == 2 ? Shape{rows, first[1]} : Shape{rows};
  groups_.push_back({Leaf(), offset, shape});
  return groups_.back().leaf;
}

void ParameterSet::allocate() {
  if (values_.defined()) return;
  values_ = Tensor::zeros({size_});
  gradients_ = Tensor::zeros({size_});
  for (const ParameterEntry& entry : entries_) initialise(entry, seed_, values_.data() + entry.offset);
  for (Group& group : groups_) {
    group.leaf.value = values_.view(group.offset, group.shape);
    group.leaf.gradient = gradients_.view(group.offset, group.shape);
  }
}

Index ParameterSet::count() const {
  Index count = 0;
  for (const ParameterEntry& entry : entries_) count += entry.shape.size();
  return count;
}

void ParameterSet::reset_gradients() {
  for (Group& group : groups_) group.leaf.written = false;
}

void ParameterSet::complete_gradients() {
  allocate();
  for (Group& group : groups_) {
    if (!group.leaf.written) std::fill_n(group.leaf.gradient.data(), group.shape.size(), real{0});
    group.leaf.written = true;
  }
}

}  // namespace weft

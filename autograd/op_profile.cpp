#include "weft/autograd/op_profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

Index columns(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }

}  // namespace

double OpProfile::lap() {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(mark_, now)).count();
}

void OpProfile::forward(std::string_view op, const Shape& result) {
  Row& row = rows_[{std::string(op), columns(result)}];
  row.forward += lap();
  ++row.calls;
}

void OpProfile::backward(std::string_view op, const Shape& result) {
  rows_[{std::string(op), columns(result)}].backward += lap();
}

void OpProfile::other(std::string_view name) {
  Row& row = rows_[{std::string(name), -1}];
  row.forward += lap();
  ++row.calls;
}

std::vector<OpProfile::Row> OpProfile::rows() const {
  std::vector<Row> all;
  for (const auto& [key, row] : rows_) {
    all.push_back(row);
    all.back().name = key.second < 0 ? key.first : fmt::format("{} [{}]", key.first, key.second);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Row& a, const Row& b) { return a.forward + a.backward > b.forward + b.backward; });
  return all;
}

}  // namespace weft

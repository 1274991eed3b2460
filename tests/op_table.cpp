#include "op_table.h"

#include <algorithm>
#include <utility>

namespace weft {

bool OpCase::large() const {
  Index size = 0;
  for (const Tensor& input : inputs) size += input.size();
  return size > 8000;
}

const std::vector<OpRow>& op_table() {
  static const std::vector<OpRow> table = [] {
    std::vector<OpRow> rows = elementary_rows();
    for (OpRow& row : model_rows()) rows.push_back(std::move(row));
    return rows;
  }();
  return table;
}

bool op_in_table(std::string_view name) {
  return std::any_of(op_table().begin(), op_table().end(), [&](const OpRow& row) { return row.name == name; });
}

Tensor random_tensor(const Shape& shape, std::uint64_t seed, double low, double high) {
  Random random(seed);
  Tensor tensor(shape);
  for (real& x : tensor.values()) x = static_cast<real>(low + (high - low) * random.uniform());
  return tensor;
}

OpCase random_case(std::string what, const Shapes& shapes, Differentiable run, Differentiable reference, double low,
                   double high) {
  OpCase result{std::move(what), {}, std::move(run), std::move(reference)};
  for (const Shape& shape : shapes) {
    if (!result.what.empty()) result.what += ' ';
    result.what += to_string(shape);
    result.inputs.push_back(random_tensor(shape, 100 + result.inputs.size(), low, high));
  }
  return result;
}

std::vector<OpCase> random_cases(const std::vector<Shapes>& shapes, const Differentiable& run,
                                 const Differentiable& reference, double low, double high) {
  std::vector<OpCase> cases;
  for (const Shapes& inputs : shapes) cases.push_back(random_case("", inputs, run, reference, low, high));
  return cases;
}

Var one_hot(const std::vector<Index>& ones, Index columns, real value) {
  Tensor tensor = Tensor::zeros({static_cast<Index>(ones.size()), columns});
  for (std::size_t i = 0; i < ones.size(); ++i) {
    tensor.values()[i * static_cast<std::size_t>(columns) + static_cast<std::size_t>(ones[i])] = value;
  }
  return Var(std::move(tensor));
}

Var dropout_mask(const DropoutMask& dropout, const Shape& shape) {
  Tensor mask(shape);
  for (Index row = 0; row < shape.rows(); ++row) {
    dropout_factors(dropout, static_cast<std::uint64_t>(row), shape.cols(), mask.data() + row * shape.cols());
  }
  return Var(std::move(mask));
}

}  // namespace weft

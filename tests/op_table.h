// The op table: for every function of autograd/ops.h the calls that prove it. A new op is proved by one new row in
// op_table_elementary.cpp or op_table_model.cpp; the modes that each row goes through are in ops_test.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/autograd/gradient_check.h"
#include "weft/autograd/ops.h"
#include "weft/core/random.h"

namespace weft {

using Vars = std::span<const Var>;
using Shapes = std::vector<Shape>;

/// One call of an op, on operands that all may want a gradient.
struct OpCase {
  std::string what;  ///< tells it from the other cases of the op
  std::vector<Tensor> inputs;
  Differentiable run;
  Differentiable reference;  ///< the same from elementary ops; null: none

  /// Whether it is there to be cut into several tiles, and has too many elements for finite differences.
  bool large() const;
};

/// An op: what it is called, on the tape too, how it is used, and calls that must throw a ShapeError.
struct OpRow {
  std::string_view name;
  std::vector<OpCase> cases;
  std::vector<std::function<void()>> wrong;
};

/// All rows.
const std::vector<OpRow>& op_table();

/// Whether the op has a row.
bool op_in_table(std::string_view name);

// ---- for the makers of rows ----

/// A dropout that drops about three of ten.
inline constexpr DropoutMask kSomeDropout{static_cast<real>(0.3), {11, 4}, random_site("op_table")};

std::vector<OpRow> elementary_rows();
std::vector<OpRow> model_rows();

/// A tensor of values from [low, high), a function of the shape and the seed alone.
Tensor random_tensor(const Shape& shape, std::uint64_t seed, double low = -1, double high = 1);

/// A case with random inputs of the given shapes.
OpCase random_case(std::string what, const Shapes& shapes, Differentiable run, Differentiable reference = nullptr,
                   double low = -1, double high = 1);

/// Cases that differ in the shapes of their inputs only.
std::vector<OpCase> random_cases(const std::vector<Shapes>& shapes, const Differentiable& run,
                                 const Differentiable& reference = nullptr, double low = -1, double high = 1);

/// A constant of zeros, for calls that must throw.
inline Var zeros(const Shape& shape) { return Var(Tensor::zeros(shape)); }

/// A constant [rows, columns] with `value` where row i is `columns[i]`, and zeros elsewhere: picks rows by a product.
Var one_hot(const std::vector<Index>& ones, Index columns, real value = 1);

/// One constant element.
inline Var number(double value) { return Var(Tensor::full({1}, static_cast<real>(value))); }

/// The factors of a dropout as a constant of the shape.
Var dropout_mask(const DropoutMask& dropout, const Shape& shape);

}  // namespace weft

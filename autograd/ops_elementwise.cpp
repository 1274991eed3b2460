// Operations that act on each element, and dropout.
#include <fmt/format.h>

#include "weft/autograd/ops.h"
#include "weft/autograd/shape_checks.h"
#include "weft/core/error.h"

namespace weft {
namespace {

Spread spread_of(std::string_view op, const Var& a, const Var& b) {
  if (a.defined() && b.defined()) {
    if (a.shape() == b.shape()) return Spread::kSame;
    if (b.shape().rank() == 1 && b.shape()[0] == a.cols()) return Spread::kRow;
    if (b.shape().size() == 1) return Spread::kScalar;
  }
  throw ShapeError(fmt::format("[{}] b {} must have the shape of a {}, or be a row of its {} columns, or one element",
                               op, to_string(b.shape()), to_string(a.shape()), a.cols()));
}

Var binary_op(std::string_view op, Binary function, const Var& a, const Var& b) {
  const Spread spread = spread_of(op, a, b);
  Tensor y(a.shape());
  binary(function, spread, a.rows(), a.cols(), a.value().data(), b.value().data(), y.data());
  Tape* tape = tape_of(a, b);
  if (tape == nullptr) return y;
  const Shape shape = a.shape();
  if ((function == Binary::kAdd || function == Binary::kSub)) {  // neither argument is read on the way back
    return tape->record(op, std::move(y), [=, a = a.slot(), b = b.slot()](const Tensor& dy, Tape& t) {
      t.give(a, dy);
      binary_backward_b(function, spread, shape.rows(), shape.cols(), nullptr, nullptr, dy.data(), t.sink(b));
    });
  }
  // mul needs each for the gradient of the other; div needs b for both.
  const bool needs_a = static_cast<bool>(b.slot()), needs_b = function == Binary::kDiv || a.slot();
  return tape->record(op, std::move(y),
                      [=, a = a.slot(), b = b.slot(), a_value = needs_a ? a.value() : Tensor(),
                       b_value = needs_b ? b.value() : Tensor()](const Tensor& dy, Tape& t) {
                        binary_backward_a(function, spread, shape.rows(), shape.cols(), b_value.data(), dy.data(),
                                          t.sink(a));
                        binary_backward_b(function, spread, shape.rows(), shape.cols(), a_value.data(), b_value.data(),
                                          dy.data(), t.sink(b));
                      });
}

Var unary_op(std::string_view op, Unary function, const Var& x) {
  if (!x.defined()) throw ShapeError(fmt::format("[{}] x is missing", op));
  Tensor y(x.shape());
  unary(function, x.value().size(), x.value().data(), y.data());
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  const Tensor kept = derivative_from_result(function) ? y : x.value();
  return tape->record(op, std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    unary_backward(function, dy.size(), kept.data(), dy.data(), t.sink(x));
  });
}

}  // namespace

Var add(const Var& a, const Var& b) { return binary_op("add", Binary::kAdd, a, b); }
Var sub(const Var& a, const Var& b) { return binary_op("sub", Binary::kSub, a, b); }
Var mul(const Var& a, const Var& b) { return binary_op("mul", Binary::kMul, a, b); }
Var div(const Var& a, const Var& b) { return binary_op("div", Binary::kDiv, a, b); }

Var neg(const Var& x) { return unary_op("neg", Unary::kNeg, x); }
Var exp(const Var& x) { return unary_op("exp", Unary::kExp, x); }
Var log(const Var& x) { return unary_op("log", Unary::kLog, x); }
Var sqrt(const Var& x) { return unary_op("sqrt", Unary::kSqrt, x); }
Var relu(const Var& x) { return unary_op("relu", Unary::kRelu, x); }
Var gelu(const Var& x) { return unary_op("gelu", Unary::kGelu, x); }
Var silu(const Var& x) { return unary_op("silu", Unary::kSilu, x); }
Var tanh(const Var& x) { return unary_op("tanh", Unary::kTanh, x); }
Var sigmoid(const Var& x) { return unary_op("sigmoid", Unary::kSigmoid, x); }

Var scale(const Var& x, real factor) {
  if (!x.defined()) throw ShapeError("[scale] x is missing");
  Tensor y(x.shape());
  accumulate_scaled(y.size(), factor, x.value().data(), {y.data(), 0});
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record("scale", std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    accumulate_scaled(dy.size(), factor, dy.data(), t.sink(x));
  });
}

Var dropout(const Var& x, const DropoutMask& dropout) {
  if (!x.defined()) throw ShapeError("[dropout] x is missing");
  if (dropout.probability == 0) return x;
  Tensor y(x.shape());
  dropout_rows(dropout, x.rows(), x.cols(), x.value().data(), {y.data(), 0});
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record("dropout", std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    dropout_rows(dropout, dy.rows(), dy.cols(), dy.data(), t.sink(x));
  });
}

Var residual(const Var& x, const Var& y, const DropoutMask& dropout) {
  require_same_shape("residual", "x", x, "y", y);
  Tensor sum(x.shape());
  residual_rows(dropout, x.rows(), x.cols(), x.value().data(), y.value().data(), sum.data());
  Tape* tape = tape_of(x, y);
  if (tape == nullptr) return sum;
  return tape->record("residual", std::move(sum), [=, x = x.slot(), y = y.slot()](const Tensor& ds, Tape& t) {
    t.give(x, ds);
    if (dropout.probability == 0) {
      t.give(y, ds);
    } else {
      dropout_rows(dropout, ds.rows(), ds.cols(), ds.data(), t.sink(y));
    }
  });
}

}  // namespace weft

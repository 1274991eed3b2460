// Products of matrices.
#include <fmt/format.h>

#include "weft/autograd/ops.h"
#include "weft/autograd/shape_checks.h"
#include "weft/core/error.h"
#include "weft/core/gemm.h"

namespace weft {

Var matmul(const Var& a, const Var& b, bool transpose_a, bool transpose_b) {
  require_matrix("matmul", "a", a);
  require_matrix("matmul", "b", b);
  const Index M = a.shape()[transpose_a ? 1 : 0], K = a.shape()[transpose_a ? 0 : 1];
  const Index N = b.shape()[transpose_b ? 0 : 1];
  if (b.shape()[transpose_b ? 1 : 0] != K) {
    throw ShapeError(fmt::format("[matmul] a {}{} and b {}{} must agree in their inner dimension", to_string(a.shape()),
                                 transpose_a ? " transposed" : "", to_string(b.shape()),
                                 transpose_b ? " transposed" : ""));
  }
  Tensor y({M, N});
  gemm(M, N, K, {a.value().data(), a.cols(), transpose_a}, {b.value().data(), b.cols(), transpose_b}, 0, y.data(), N);
  Tape* tape = tape_of(a, b);
  if (tape == nullptr) return y;
  return tape->record("matmul", std::move(y),
                      [=, a = a.slot(), b = b.slot(), A = b.slot() ? a.value() : Tensor(),
                       B = a.slot() ? b.value() : Tensor()](const Tensor& dy, Tape& t) {
                        const Matrix g{dy.data(), N}, g_transposed{dy.data(), N, true};
                        if (const Dst da = t.sink(a)) {
                          const Matrix other{B.data(), B.cols(), !transpose_b};
                          if (transpose_a) {  // a^T has gradient g op(b)^T, so a has op(b) g^T
                            gemm(K, M, N, {B.data(), B.cols(), transpose_b}, g_transposed, da.beta, da.data, M);
                          } else {
                            gemm(M, K, N, g, other, da.beta, da.data, K);
                          }
                        }
                        if (const Dst db = t.sink(b)) {
                          const Matrix other{A.data(), A.cols(), !transpose_a};
                          if (transpose_b) {
                            gemm(N, K, M, g_transposed, {A.data(), A.cols(), transpose_a}, db.beta, db.data, K);
                          } else {
                            gemm(K, N, M, other, g, db.beta, db.data, N);
                          }
                        }
                      });
}

Var linear(const Var& x, const Var& weight, const Var& bias, Activation activation) {
  require_matrix("linear", "x", x);
  require_matrix("linear", "weight", weight);
  const Index T = x.shape()[0], K = x.shape()[1], N = weight.shape()[0];
  if (weight.shape()[1] != K) {
    throw ShapeError(fmt::format("[linear] last dimension of x {} must match in-features of weight {}",
                                 to_string(x.shape()), to_string(weight.shape())));
  }
  if (bias.defined()) require_shape("linear", "bias", bias, {N}, "one for each row of weight");
  Tape* tape = tape_of(x, weight, bias);
  Tensor y({T, N});
  // Backward reads the result of relu, and for gelu and silu what went into them.
  const bool keeps_before = tape != nullptr && (activation == Activation::kGelu || activation == Activation::kSilu);
  Tensor before = keeps_before ? Tensor({T, N}) : Tensor();
  linear(T, N, K, x.value().data(), weight.value().data(), bias.value().data(), activation, y.data(), before.data(),
         tape != nullptr);
  if (tape == nullptr) return y;
  Tensor kept = keeps_before ? std::move(before) : activation == Activation::kRelu ? y : Tensor();
  return tape->record(
      "linear", std::move(y),
      [=, x = x.slot(), weight = weight.slot(), bias = bias.slot(), X = weight.slot() ? x.value() : Tensor(),
       W = x.slot() ? weight.value() : Tensor(), kept = std::move(kept)](const Tensor& dy, Tape& t) {
        // The gradient before the activation takes the place of dy where nobody else has that.
        Tensor g = activation == Activation::kNone || dy.unique() ? dy : Tensor(dy.shape());
        if (activation == Activation::kNone) {
          sum_rows(T, N, g.data(), t.sink(bias));
        } else {
          activation_backward(activation, T, N, kept.data(), dy.data(), g.data(), t.sink(bias));
        }
        if (const Dst dw = t.sink(weight)) gemm(N, K, T, {g.data(), N, true}, {X.data(), K}, dw.beta, dw.data, K);
        if (const Dst dx = t.sink(x)) gemm(T, K, N, {g.data(), N}, {W.data(), K}, dx.beta, dx.data, K);
      });
}

}  // namespace weft

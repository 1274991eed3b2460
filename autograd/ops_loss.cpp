// Losses. Cross-entropy makes its gradient on the way forward, where the exponentials are at hand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "weft/autograd/ops.h"
#include "weft/autograd/shape_checks.h"
#include "weft/core/error.h"
#include "weft/core/gemm.h"

namespace weft {
namespace {

void require_targets(std::string_view op, std::span<const TokenId> targets, Index rows, Index classes) {
  if (static_cast<Index>(targets.size()) != rows) {
    throw ShapeError(fmt::format("[{}] {} targets for {} rows; the numbers must be equal", op, targets.size(), rows));
  }
  require_ids(op, "target", targets, classes);
}

void add_statistics(const CrossEntropySums& sums, TokenStatistics* statistics) {
  if (statistics == nullptr) return;
  statistics->negative_log_likelihood += sums.negative_log_likelihood;
  statistics->correct += sums.correct;
}

Tensor scalar(double value) { return Tensor::full({1}, static_cast<real>(value)); }

/// Passes `gradient`, made for an upstream gradient of 1, on to `slot`.
void pass_on(Tape& tape, Slot slot, const Tensor& gradient, real upstream) {
  if (upstream == 1) {
    tape.give(slot, gradient);
  } else {
    accumulate_scaled(gradient.size(), upstream, gradient.data(), tape.sink(slot));
  }
}

/// Rows of logits worked on at a time: about 16 MiB, in multiples of 64. More rows, and the gradient of the weights is
/// added to less often; fewer, and the logits stay nearer to the CPU.
Index chunk_rows(Index classes) {
  constexpr Index kChunkBytes = 12 << 20;
  return std::max<Index>(64, kChunkBytes / (std::max<Index>(classes, 1) * static_cast<Index>(sizeof(real))) / 64 * 64);
}

}  // namespace

Var cross_entropy(const Var& logits, std::span<const TokenId> targets, const CrossEntropyOptions& options) {
  require_matrix("cross_entropy", "logits", logits);
  const Index T = logits.shape()[0], V = logits.shape()[1];
  require_targets("cross_entropy", targets, T, V);
  Tape* tape = logits.tape();
  Tensor gradient = tape != nullptr ? Tensor({T, V}) : Tensor();
  const CrossEntropySums sums = cross_entropy_rows(T, V, logits.value().data(), targets.data(), options.label_smoothing,
                                                   options.factor, gradient.data());
  add_statistics(sums, options.statistics);
  Tensor loss = scalar(sums.loss * static_cast<double>(options.factor));
  if (tape == nullptr) return loss;
  return tape->record("cross_entropy", std::move(loss), [=, logits = logits.slot()](const Tensor& dy, Tape& t) {
    pass_on(t, logits, gradient, dy.item());
  });
}

Var linear_cross_entropy(const Var& x, const Var& weight, const Var& bias, std::span<const TokenId> targets,
                         const CrossEntropyOptions& options) {
  require_matrix("linear_cross_entropy", "x", x);
  require_matrix("linear_cross_entropy", "weight", weight);
  const Index T = x.shape()[0], K = x.shape()[1], V = weight.shape()[0];
  if (weight.shape()[1] != K) {
    throw ShapeError(fmt::format("[linear_cross_entropy] last dimension of x {} must match in-features of weight {}",
                                 to_string(x.shape()), to_string(weight.shape())));
  }
  if (bias.defined()) require_shape("linear_cross_entropy", "bias", bias, {V}, "one for each row of weight");
  require_targets("linear_cross_entropy", targets, T, V);
  Tape* tape = tape_of(x, weight, bias);
  // The gradients for an upstream gradient of 1, made chunk by chunk.
  Tensor dx = x.slot() ? Tensor({T, K}) : Tensor();
  Tensor dweight = weight.slot() ? Tensor({V, K}) : Tensor();
  Tensor dbias = bias.slot() ? Tensor({V}) : Tensor();
  const Index chunk = std::min(T, chunk_rows(V));
  Tensor logits({chunk, V});
  CrossEntropySums total;
  const PackedMatrix to_logits(K, V, {weight.value().data(), K, true});
  std::optional<PackedMatrix> to_dx;
  if (dx.defined()) to_dx.emplace(V, K, Matrix{weight.value().data(), K});
  for (Index begin = 0; begin < T || begin == 0; begin += chunk) {
    const Index rows = std::min(chunk, T - begin);
    const real* x_rows = x.value().data() + begin * K;
    gemm(rows, {x_rows, K}, to_logits, 0, logits.data(), V, {.bias = bias.value().data()});
    const real beta = begin == 0 ? 0 : 1;
    const CrossEntropySums sums =
        cross_entropy_rows(rows, V, logits.data(), targets.data() + begin, options.label_smoothing, options.factor,
                           tape != nullptr ? logits.data() : nullptr, {dbias.data(), beta});
    total.loss += sums.loss;
    total.negative_log_likelihood += sums.negative_log_likelihood;
    total.correct += sums.correct;
    if (dx.defined()) gemm(rows, {logits.data(), V}, *to_dx, 0, dx.data() + begin * K, K);
    if (dweight.defined()) gemm(V, K, rows, {logits.data(), V, true}, {x_rows, K}, beta, dweight.data(), K);
    if (T == 0) break;
  }
  add_statistics(total, options.statistics);
  Tensor loss = scalar(total.loss * static_cast<double>(options.factor));
  if (tape == nullptr) return loss;
  return tape->record("linear_cross_entropy", std::move(loss),
                      [=, x = x.slot(), weight = weight.slot(), bias = bias.slot()](const Tensor& dy, Tape& t) {
                        const real upstream = dy.item();
                        if (x) pass_on(t, x, dx, upstream);
                        if (weight) pass_on(t, weight, dweight, upstream);
                        if (bias) pass_on(t, bias, dbias, upstream);
                      });
}

Var mean_squared_error(const Var& x, const Var& y) {
  require_same_shape("mean_squared_error", "x", x, "y", y);
  const Index size = x.value().size();
  if (size == 0) throw ShapeError("[mean_squared_error] x has nothing to take the mean of");
  Tensor difference(x.shape());
  binary(Binary::kSub, Spread::kSame, 1, size, x.value().data(), y.value().data(), difference.data());
  double total = 0;
  for (const real d : difference.values()) total += static_cast<double>(d) * static_cast<double>(d);
  Tape* tape = tape_of(x, y);
  Tensor loss = scalar(total / static_cast<double>(size));
  if (tape == nullptr) return loss;
  return tape->record("mean_squared_error", std::move(loss),
                      [=, x = x.slot(), y = y.slot()](const Tensor& dy, Tape& t) {
                        const real factor = 2 * dy.item() / static_cast<real>(size);
                        accumulate_scaled(size, factor, difference.data(), t.sink(x));
                        accumulate_scaled(size, -factor, difference.data(), t.sink(y));
                      });
}

Var kl_divergence(const Var& log_probability, const Var& target) {
  require_same_shape("kl_divergence", "log_probability", log_probability, "target", target);
  const Index size = target.value().size(), rows = target.rows();
  if (size == 0) throw ShapeError("[kl_divergence] target has no rows");
  const Tensor q = log_probability.value(), p = target.value();
  double total = 0;
  for (Index i = 0; i < size; ++i) {
    const auto share = static_cast<double>(p.data()[i]);
    if (share > 0) total += share * (std::log(share) - static_cast<double>(q.data()[i]));
  }
  Tape* tape = tape_of(log_probability, target);
  Tensor loss = scalar(total / static_cast<double>(rows));
  if (tape == nullptr) return loss;
  return tape->record("kl_divergence", std::move(loss),
                      [=, log_probability = log_probability.slot(), target = target.slot()](const Tensor& dy, Tape& t) {
                        const real factor = dy.item() / static_cast<real>(rows);
                        accumulate_scaled(size, -factor, p.data(), t.sink(log_probability));
                        if (const Dst dp = t.sink(target)) {
                          for (Index i = 0; i < size; ++i) {
                            const real share = p.data()[i];
                            const real g = share > 0 ? factor * (std::log(share) - q.data()[i] + 1) : real{0};
                            dp.data[i] = dp.beta == 0 ? g : dp.beta * dp.data[i] + g;
                          }
                        }
                      });
}

}  // namespace weft

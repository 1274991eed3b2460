// Kernels that look at whole rows of logits: softmax and cross-entropy.
#include <algorithm>
#include <array>
#include <cmath>

#include "weft/core/kernels.h"
#include "weft/core/memory.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

/// Rows a tile: about 8,192 elements, and a number that depends on the width alone.
Index row_tile(Index columns) { return std::max<Index>(1, 8192 / std::max<Index>(columns, 1)); }

/// e^(x - shift) into y; returns the sum.
real exp_row(Index n, const real* x, real shift, real* y) {
#pragma omp simd
  for (Index i = 0; i < n; ++i) y[i] = simd::exp(x[i] - shift);
  return simd::sum(n, y);
}

template <class Value>
void put(Index n, Dst dst, Index start, Value value) {
  real* out = dst.data + start;
  if (dst.beta == 0) {
#pragma omp simd
    for (Index i = 0; i < n; ++i) out[i] = value(i);
  } else {
    const real beta = dst.beta;
#pragma omp simd
    for (Index i = 0; i < n; ++i) out[i] = beta * out[i] + value(i);
  }
}

}  // namespace

void softmax(Index T, Index D, const real* x, real* y) {
  parallel_for(T, row_tile(D), [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      real* row = y + t * D;
      const real inverse = 1 / exp_row(D, x + t * D, simd::max(D, x + t * D), row);
#pragma omp simd
      for (Index d = 0; d < D; ++d) row[d] *= inverse;
    }
  });
}

void softmax_backward(Index T, Index D, const real* y, const real* dy, Dst dx) {
  if (!dx) return;
  parallel_for(T, row_tile(D), [&](Index begin, Index end) {
    for (Index start = begin * D; start < end * D; start += D) {
      const real mean = simd::dot(D, y + start, dy + start);
      put(D, dx, start, [=](Index d) { return y[start + d] * (dy[start + d] - mean); });
    }
  });
}

void log_softmax(Index T, Index D, const real* x, real* y) {
  parallel_for(T, row_tile(D), [&](Index begin, Index end) {
    for (Index start = begin * D; start < end * D; start += D) {
      const real largest = simd::max(D, x + start);
      const real log_sum = largest + std::log(exp_row(D, x + start, largest, y + start));
      put(D, {y, 0}, start, [=](Index d) { return x[start + d] - log_sum; });
    }
  });
}

void log_softmax_backward(Index T, Index D, const real* y, const real* dy, Dst dx) {
  if (!dx) return;
  parallel_for(T, row_tile(D), [&](Index begin, Index end) {
    for (Index start = begin * D; start < end * D; start += D) {
      const real total = simd::sum(D, dy + start);
      put(D, dx, start, [=](Index d) { return dy[start + d] - simd::exp(y[start + d]) * total; });
    }
  });
}

CrossEntropySums cross_entropy_rows(Index T, Index V, const real* logits, const TokenId* targets, real label_smoothing,
                                    real factor, real* dlogits) {
  // Sums are kept for each tile and added in order. Without dlogits, e^x goes to a row of scratch memory.
  const Index tile = row_tile(V), tiles = (T + tile - 1) / tile;
  constexpr std::size_t kOnStack = 256;
  std::array<CrossEntropySums, kOnStack> on_stack;
  CrossEntropySums total;
  for (Index first_tile = 0; first_tile < tiles; first_tile += static_cast<Index>(kOnStack)) {
    const Index first = first_tile * tile, last = std::min(T, first + static_cast<Index>(kOnStack) * tile);
    on_stack.fill({});
    parallel_for(last - first, tile, [&](Index begin, Index end) {
      CrossEntropySums& sums = on_stack[static_cast<std::size_t>(begin / tile)];
      auto* scratch =
          dlogits != nullptr ? nullptr : static_cast<real*>(pool_allocate(static_cast<std::size_t>(V) * sizeof(real)));
      for (Index t = first + begin; t < first + end; ++t) {
        const real* x = logits + t * V;
        const TokenId target = targets[t];
        const real target_logit = x[target];
        const real largest = simd::max(V, x);
        const real mean_logit = label_smoothing == 0 ? 0 : simd::sum(V, x) / static_cast<real>(V);
        real* e = dlogits != nullptr ? dlogits + t * V : scratch;
        const real sum = exp_row(V, x, largest, e);
        const auto log_sum = static_cast<double>(largest) + std::log(static_cast<double>(sum));
        const double nll = log_sum - static_cast<double>(target_logit);
        sums.negative_log_likelihood += nll;
        sums.loss += label_smoothing == 0
                         ? nll
                         : (1 - static_cast<double>(label_smoothing)) * nll +
                               static_cast<double>(label_smoothing) * (log_sum - static_cast<double>(mean_logit));
        // A NaN among the logits fails every comparison: never correct.
        sums.correct += target_logit >= largest && nll == nll ? 1 : 0;
        if (dlogits != nullptr) {
          const real scale = factor / sum, even = factor * label_smoothing / static_cast<real>(V);
#pragma omp simd
          for (Index v = 0; v < V; ++v) e[v] = e[v] * scale - even;
          e[target] -= factor * (1 - label_smoothing);
        }
      }
      if (scratch != nullptr) pool_free(scratch);
    });
    for (const CrossEntropySums& sums : on_stack) {
      total.loss += sums.loss;
      total.negative_log_likelihood += sums.negative_log_likelihood;
      total.correct += sums.correct;
    }
  }
  return total;
}

}  // namespace weft

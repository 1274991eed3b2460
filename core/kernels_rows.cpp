// Kernels that look at whole rows of logits: softmax and cross-entropy.
#include <algorithm>
#include <array>
#include <cmath>

#include "weft/core/column_sums.h"
#include "weft/core/kernels.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

/// Rows a tile: about 8,192 elements, and a number that depends on the width alone.
Index row_tile(Index columns) { return std::max<Index>(1, 8192 / std::max<Index>(columns, 1)); }

/// The sum of e^(x - shift); each also goes to y, unless null. In pieces, which are added up while they are near.
real exp_row(Index n, const real* x, real shift, real* y) {
  constexpr Index kPiece = 1024;
  std::array<real, kPiece> piece;
  real total = 0;
  for (Index begin = 0; begin < n; begin += kPiece) {
    const Index length = std::min(kPiece, n - begin);
    real* e = y != nullptr ? y + begin : piece.data();
#pragma omp simd
    for (Index i = 0; i < length; ++i) e[i] = simd::exp(x[begin + i] - shift);
    total += simd::sum(length, e);
  }
  return total;
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
                                    real factor, real* dlogits, Dst dbias) {
  // Sums are kept for each tile and added in order.
  constexpr Index kMostTiles = 256;
  const Index tile = std::max(tile_rows(T, V, 8 * std::max<Index>(V, 1024)), (T + kMostTiles - 1) / kMostTiles);
  std::array<CrossEntropySums, kMostTiles> of_tiles{};
  ColumnSums bias_sums(dbias ? T : 0, V, tile);
  parallel_for(T, tile, [&](Index begin, Index end) {
    CrossEntropySums sums;
    real* const biases = dbias ? bias_sums.of_tile(begin) : nullptr;
    for (Index t = begin; t < end; ++t) {
      const real* const x = logits + t * V;
      real* const e = dlogits != nullptr ? dlogits + t * V : nullptr;
      const TokenId target = targets[t];
      const real target_logit = x[target];
      const real largest = simd::max(V, x);
      const real mean_logit = label_smoothing == 0 ? 0 : simd::sum(V, x) / static_cast<real>(V);
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
      if (e == nullptr) continue;
      const real scale = factor / sum, even = factor * label_smoothing / static_cast<real>(V);
      simd::each(V, [=](auto zero, Index v) {
        using Value = decltype(zero);
        const Value g = simd::get<Value>(e + v) * scale - even;
        simd::put(e + v, 0, g);
        if (biases != nullptr) simd::put(biases + v, 1, g);
      });
      const real at_target = factor * (1 - label_smoothing);
      e[target] -= at_target;
      if (biases != nullptr) biases[target] -= at_target;
    }
    of_tiles[static_cast<std::size_t>(begin / tile)] = sums;
  });
  bias_sums.finish(dbias);
  CrossEntropySums total;
  for (const CrossEntropySums& sums : of_tiles) {
    total.loss += sums.loss;
    total.negative_log_likelihood += sums.negative_log_likelihood;
    total.correct += sums.correct;
  }
  return total;
}

}  // namespace weft

#include "weft/core/gemm_rows.h"

#include <algorithm>
#include <cstring>

#include "weft/core/simd.h"

namespace weft {
namespace {

using simd::kLanes;
using simd::Vec;

constexpr int kRows = 6, kColumns = 4;  // of a block: 24 sums, 4 vectors of W and one of x fill 32 registers
constexpr Index kDepth = 1024;          // of a block: its rows of x and W stay in the first-level cache

/// The last `count` elements of a row, then zeros.
Vec load_part(const real* p, Index count) {
  Vec v{};
  std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(real));
  return v;
}

/// R rows of x with C rows of W over K elements; adds to y unless `first`.
template <int R, int C>
void block(Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y, Index y_stride, bool first) {
  Vec sum[R][C] = {};
  const auto step = [&](auto load_at) {
    Vec w[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) w[c] = load_at(W + c * w_stride);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec one = load_at(x + r * x_stride);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sum[r][c] += one * w[c];
    }
  };
  Index k = 0;
  for (; k + kLanes <= K; k += kLanes) step([k](const real* row) { return simd::load(row + k); });
  if (k < K) step([k, K](const real* row) { return load_part(row + k, K - k); });
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    real sums[C];
    if constexpr (C == 4) {
      simd::lane_sums(sum[r], sums);
    } else {
      for (int c = 0; c < C; ++c) sums[c] = simd::lane_sum(sum[r][c]);
    }
    real* out = y + r * y_stride;
    for (int c = 0; c < C; ++c) out[c] = first ? sums[c] : out[c] + sums[c];
  }
}

template <int R>
void block_row(Index N, Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y, Index y_stride,
               bool first) {
  Index n = 0;
  for (; n + kColumns <= N; n += kColumns) {
    block<R, kColumns>(K, x, x_stride, W + n * w_stride, w_stride, y + n, y_stride, first);
  }
  for (; n < N; ++n) block<R, 1>(K, x, x_stride, W + n * w_stride, w_stride, y + n, y_stride, first);
}

}  // namespace

void gemm_rows(Index M, Index N, Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y,
               Index y_stride) {
  constexpr decltype(&block_row<1>) kBlockRows[kRows] = {block_row<1>, block_row<2>, block_row<3>,
                                                         block_row<4>, block_row<5>, block_row<6>};
  const Index blocks = (M + kRows - 1) / kRows;
  Index k = 0;
  do {
    const Index depth = std::min(kDepth, K - k);
    for (Index b = 0; b < blocks; ++b) {  // blocks of nearly equal heights
      const Index begin = M * b / blocks, height = M * (b + 1) / blocks - begin;
      kBlockRows[height - 1](N, depth, x + begin * x_stride + k, x_stride, W + k, w_stride, y + begin * y_stride,
                             y_stride, k == 0);
    }
    k += depth;
  } while (k < K);
}

}  // namespace weft

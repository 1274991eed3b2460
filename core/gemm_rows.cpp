#include "weft/core/gemm_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/core/flops.h"
#include "weft/core/simd.h"

namespace weft {
namespace {

// A block is kRows rows of x times kColumns rows of W, its sums in registers.
#if defined(__AVX512F__)
using Lanes = simd::Vec;
constexpr int kRows = 6;  // 24 sums, 4 vectors of W and one of x: 29 of 32 registers
#else
using Lanes = real __attribute__((vector_size(32)));
constexpr int kRows = 3;  // 12 sums and 4 vectors of W: 16 registers
#endif
constexpr int kColumns = 4;
constexpr Index kWidth = sizeof(Lanes) / sizeof(real);
constexpr Index kDepth = 1024;  // elements of a block's rows, which then stay in the first-level cache

/// The first `count` elements at p, then zeros.
Lanes load(const real* p, Index count = kWidth) {
  Lanes v{};
  std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(real));
  return v;
}

/// Keeps the compiler from reading a vector from memory again for each use, which would make loads the bottleneck.
inline void in_register([[maybe_unused]] Lanes& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#endif
}

/// The sum of the lanes of each of C vectors, pairwise.
template <int C>
void lane_sums(const Lanes* v, real* sums) {
  for (int c = 0; c < C; ++c) {
    real lanes[kWidth];
    std::memcpy(lanes, v + c, sizeof lanes);
    for (Index width = kWidth / 2; width > 0; width /= 2) {
      for (Index i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    sums[c] = lanes[0];
  }
}
#if defined(__AVX512F__)
template <>
void lane_sums<4>(const Lanes* v, real* sums) {
  simd::lane_sums(v, sums);
}
#endif

/// R rows of x with C rows of W over K elements; adds to y unless `first`. With `Ahead`, asks for the C rows of W after
/// these, which come next and may still be in memory (behind the last row it asks for nothing that matters).
template <int R, int C, bool Ahead>
void block(Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y, Index y_stride, bool first) {
  Lanes sum[R][C] = {};
  Index k = 0;
  const auto step = [&](auto load_at) {
    Lanes w[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      w[c] = load_at(W + c * w_stride);
      if constexpr (Ahead) __builtin_prefetch(W + (c + C) * w_stride + k);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Lanes one = load_at(x + r * x_stride);
      in_register(one);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sum[r][c] += one * w[c];
    }
  };
  for (; k + kWidth <= K; k += kWidth) step([k](const real* row) { return load(row + k); });
  if (k < K) step([k, K](const real* row) { return load(row + k, K - k); });
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    real sums[C];
    lane_sums<C>(sum[r], sums);
    real* out = y + r * y_stride;
    for (int c = 0; c < C; ++c) out[c] = first ? sums[c] : out[c] + sums[c];
  }
}

/// R rows of x with N rows of W.
template <int R, bool Ahead>
void block_row(Index N, Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y, Index y_stride,
               bool first) {
  Index n = 0;
  for (; n + kColumns <= N; n += kColumns) {
    block<R, kColumns, Ahead>(K, x, x_stride, W + n * w_stride, w_stride, y + n, y_stride, first);
  }
  for (; n < N; ++n) block<R, 1, false>(K, x, x_stride, W + n * w_stride, w_stride, y + n, y_stride, first);
}

using BlockRow = decltype(&block_row<1, true>);

template <int... R>
BlockRow block_row_of(Index height, bool ahead, std::integer_sequence<int, R...>) {
  constexpr BlockRow kAhead[] = {block_row<R + 1, true>...}, kAgain[] = {block_row<R + 1, false>...};
  return (ahead ? kAhead : kAgain)[height - 1];
}

}  // namespace

void gemm_rows(Index M, Index N, Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y,
               Index y_stride) {
  const Index blocks = (M + kRows - 1) / kRows;
  Index k = 0;
  do {
    const Index depth = std::min(kDepth, K - k);
    for (Index b = 0; b < blocks; ++b) {  // blocks of nearly equal heights
      const Index begin = M * b / blocks, height = M * (b + 1) / blocks - begin;
      block_row_of(height, b == 0, std::make_integer_sequence<int, kRows>())(
          N, depth, x + begin * x_stride + k, x_stride, W + k, w_stride, y + begin * y_stride, y_stride, k == 0);
    }
    k += depth;
  } while (k < K);
}

void gemm_rows_tiled(Index M, Index N, Index K, const real* x, const real* W, real* y, const Epilogue& epilogue) {
  // A tile takes some microseconds at least. With few rows it is reading W that takes the time, else the arithmetic, and
  // then the tile's part of W stays in the second-level cache.
  const bool few = M < 8, small = M * N * K <= 32768;
  const Index rows = 512;
  const Index columns = small ? std::max<Index>(N, 1)
                        : few ? std::clamp<Index>(32768 / K / 16 * 16, 16, 2048)
                              : (N < 1024 && M <= rows ? 64 : 128);
  const Index across = (N + columns - 1) / columns, down = (M + rows - 1) / rows;
  count_flops(2 * M * N * K);
  parallel_for(across * down, 1, [&](Index index, Index) {
    const Index row = index / across * rows, column = index % across * columns;
    const Tile tile{row, std::min(row + rows, M), column, std::min(column + columns, N)};
    gemm_rows(tile.row_end - row, tile.column_end - column, K, x + row * K, K, W + column * K, K, y + row * N + column,
              N);
    apply_epilogue(epilogue, tile, y, N);
  });
}

}  // namespace weft

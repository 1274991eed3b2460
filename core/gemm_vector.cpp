// Weft's own matrix products. B is laid out in panels of 32 columns that all tiles share; a tile is a range of rows of C
// and goes through B panel by panel, in blocks of K that fit the caches. The innermost loop keeps 14 rows of a panel's
// columns in registers. An element of C is the sum over k in order, cut into blocks of a length that depends on K alone:
// its bits depend on its row of A and its column of B only. The scheme is that of Goto and van de Geijn 2008, "Anatomy of
// high-performance matrix multiplication".
#include "weft/core/gemm.h"

#ifdef WEFT_VECTOR_GEMM

#include <algorithm>

#include "weft/core/flops.h"
#include "weft/core/memory.h"
#include "weft/core/simd.h"

namespace weft {
namespace {

using simd::kLanes;
using simd::load;
using simd::store;
using simd::Vec;

constexpr Index kRows = 14;             // of C in registers: with two vectors of columns, 28 of the 32 registers
constexpr Index kColumns = 2 * kLanes;  // of a panel
constexpr Index kDepth = 384;           // most of K in one block: a panel of it stays in the cache nearest to the core
constexpr Index kAhead = 16;            // rows that are fetched before they are needed, where they are copied
constexpr Index kTiles = 8;             // of a product that has at least two panels of rows for each

Index panels_of(Index length, Index width) { return (length + width - 1) / width; }

/// The length of the blocks that K is cut into: nearly equal ones.
Index block_depth(Index K) {
  const Index blocks = std::max<Index>(1, panels_of(K, kDepth));
  return std::max<Index>(1, panels_of(panels_of(K, blocks), 8) * 8);
}

// ---- B in panels ----------------------------------------------------------------------------------------------------

/// Panel `panel` of B, [K, kColumns], with zeros beyond column N.
void pack_panel(Index K, Index N, const Matrix& B, Index panel, real* out) {
  const Index first = panel * kColumns, width = std::min(kColumns, N - first);
  if (!B.transposed) {
    for (Index k = 0; k < K; ++k, out += kColumns) {
      const real* in = B.data + k * B.stride + first;
      const real* ahead = B.data + std::min(k + kAhead, K - 1) * B.stride + first;
      for (Index i = 0; i < width; i += kLanes) __builtin_prefetch(ahead + i);
      if (width == kColumns) {
        store(out, load(in));
        store(out + kLanes, load(in + kLanes));
      } else {
        std::copy_n(in, width, out);
        std::fill_n(out + width, kColumns - width, real{0});
      }
    }
    return;
  }
  for (Index half = 0; half < kColumns; half += kLanes) {
    const Index columns = std::clamp<Index>(width - half, 0, kLanes);
    const real* in = B.data + (first + half) * B.stride;
    Index k = 0;
    if (columns == kLanes) {
      for (; k + kLanes <= K; k += kLanes) {
        Vec square[kLanes];
        for (Index i = 0; i < kLanes; ++i) square[i] = load(in + i * B.stride + k);
        simd::transpose(square);
        for (Index i = 0; i < kLanes; ++i) store(out + (k + i) * kColumns + half, square[i]);
      }
    }
    for (; k < K; ++k) {
      real* row = out + k * kColumns + half;
      for (Index i = 0; i < columns; ++i) row[i] = in[i * B.stride + k];
      std::fill_n(row + columns, kLanes - columns, real{0});
    }
  }
}

// ---- the innermost loop ---------------------------------------------------------------------------------------------

/// What becomes of the sums of one block of K.
struct Target {
  real* C;
  Index stride, width;  // of C; columns that are there
  real alpha, beta;
  const real* bias;  // null but for the last block
  bool relu;
};

/// Rows of A: element (i, k) at data + i * row + k * step, where step is 1 or kRows.
struct Rows {
  const real* data;
  Index row;
};

template <Index kCount, Index kStep>
void multiply(Index K, const Rows& A, const real* B, const Target& t) {
  Vec sums[kCount][2];
#pragma GCC unroll 14
  for (Index i = 0; i < kCount; ++i) sums[i][0] = sums[i][1] = Vec{};
  const real* a = A.data;
  for (Index k = 0; k < K; ++k) {
    const Vec b0 = load(B), b1 = load(B + kLanes);
    B += kColumns;
#pragma GCC unroll 14
    for (Index i = 0; i < kCount; ++i) {
      const real one = a[i * (kStep == 1 ? A.row : 1)];
      sums[i][0] += one * b0;
      sums[i][1] += one * b1;
    }
    a += kStep;
  }
  // Unfinished panels go through a copy, so that every element is treated alike.
  alignas(64) real edge[kCount * kColumns];
  const bool whole = t.width == kColumns;
  real* const C = whole ? t.C : edge;
  const Index stride = whole ? t.stride : kColumns;
  if (!whole && t.beta != 0) {
    for (Index i = 0; i < kCount; ++i) std::copy_n(t.C + i * t.stride, t.width, edge + i * kColumns);
  }
  alignas(64) real bias_edge[kColumns] = {};
  const real* bias = t.bias;
  if (!whole && bias != nullptr) {
    std::copy_n(bias, t.width, bias_edge);
    bias = bias_edge;
  }
#pragma GCC unroll 14
  for (Index i = 0; i < kCount; ++i) {
    for (Index half = 0; half < 2; ++half) {
      real* c = C + i * stride + half * kLanes;
      Vec sum = sums[i][half];
      if (t.alpha != 1) sum *= t.alpha;
      if (t.beta != 0) sum += t.beta == 1 ? load(c) : t.beta * load(c);
      if (bias != nullptr) sum += load(bias + half * kLanes);
      if (t.relu) sum = sum < Vec{} ? Vec{} : sum;
      store(c, sum);
    }
  }
  if (!whole) {
    for (Index i = 0; i < kCount; ++i) std::copy_n(edge + i * kColumns, t.width, t.C + i * t.stride);
  }
}

using Multiply = void (*)(Index, const Rows&, const real*, const Target&);

/// multiply() for 1 to kRows rows.
template <Index kStep>
constexpr Multiply kMultiply[kRows] = {
    multiply<1, kStep>,  multiply<2, kStep>,  multiply<3, kStep>,  multiply<4, kStep>, multiply<5, kStep>,
    multiply<6, kStep>,  multiply<7, kStep>,  multiply<8, kStep>,  multiply<9, kStep>, multiply<10, kStep>,
    multiply<11, kStep>, multiply<12, kStep>, multiply<13, kStep>, multiply<14, kStep>};

// ---- tiles ----------------------------------------------------------------------------------------------------------

/// Whether a tile copies its rows of A: if they are to be transposed, or if their distance is a power of two, so that they
/// fall onto the same places of a cache.
bool is_copied(const Matrix& A) {
  constexpr Index kFar = 4096 / static_cast<Index>(sizeof(real));
  return A.transposed || A.stride % kFar == 0;
}

/// A product's operands and target.
struct Product {
  Index M, N, K;
  Matrix A;
  const real* panels;  // of B
  real alpha, beta;
  real* C;
  Index stride;
  Epilogue epilogue;
};

/// Copies rows [begin, begin + rows) of A: in panels of kRows rows, each [K, kRows], if A is transposed, else row by row.
void copy_rows(const Product& p, Index begin, Index rows, real* out) {
  if (!p.A.transposed) {
    for (Index i = 0; i < rows; ++i) std::copy_n(p.A.data + (begin + i) * p.A.stride, p.K, out + i * p.K);
    return;
  }
  for (Index k = 0; k < p.K; ++k) {
    const real* in = p.A.data + k * p.A.stride + begin;
    // What lies a stride apart, the CPU does not fetch by itself.
    const real* ahead = p.A.data + std::min(k + kAhead, p.K - 1) * p.A.stride + begin;
    for (Index i = 0; i < rows; i += kLanes) __builtin_prefetch(ahead + i);
    for (Index i = 0; i < rows; i += kRows) {
      real* panel = out + i * p.K + k * kRows;
      // A whole vector writes more than kRows elements; what is too much is overwritten by the next row.
      if (kLanes >= kRows && begin + i + kLanes <= p.M && k + 1 < p.K) {
        store(panel, load(in + i));
      } else {
        for (Index r = 0; r < std::min(kRows, rows - i); ++r) panel[r] = in[i + r];
      }
    }
  }
}

/// Rows [begin, end) and panels [first, last) of C.
void multiply_tile(const Product& p, Index begin, Index end, Index first, Index last) {
  const Index depth = block_depth(p.K), rows = end - begin;
  const bool copied = is_copied(p.A);
  const PoolArray copy = copied ? pool_array(panels_of(rows, kRows) * kRows * p.K + kLanes) : nullptr;
  if (copied) copy_rows(p, begin, rows, copy.get());
  const real* const A = copied ? copy.get() : p.A.data + begin * p.A.stride;
  const Index stride = copied ? p.K : p.A.stride;
  for (Index panel = first; panel < last; ++panel) {
    const Index column = panel * kColumns;
    Target target{nullptr, p.stride, std::min(kColumns, p.N - column), p.alpha, p.beta, nullptr, false};
    for (Index k = 0; k == 0 || k < p.K; k += depth) {
      const Index length = std::min(depth, p.K - k);
      const real* B = p.panels + (panel * p.K + k) * kColumns;
      if (k + depth >= p.K) {
        if (p.epilogue.bias != nullptr) target.bias = p.epilogue.bias + column;
        target.relu = p.epilogue.relu;
      }
      for (Index i = 0; i < rows; i += kRows) {
        const auto count = static_cast<std::size_t>(std::min(kRows, rows - i) - 1);
        target.C = p.C + (begin + i) * p.stride + column;
        if (p.A.transposed) {
          kMultiply<kRows>[count](length, {A + i * p.K + k * kRows, 1}, B, target);
        } else {
          kMultiply<1>[count](length, {A + i * stride + k, stride}, B, target);
        }
      }
      target.beta = 1;
    }
  }
}

/// How many tiles the rows are cut into: a multiple of kTiles, so that threads end at about the same time, and so many that
/// a tile's rows of A stay in the cache of a core.
Index row_tiles_of(Index row_panels, Index K) {
  constexpr Index kTileElements = 128 * 1024, kMostPanels = 20;
  const Index most = std::clamp<Index>(kTileElements / (std::max<Index>(K, 1) * kRows), 2, kMostPanels);
  for (Index tiles = 1; tiles < kTiles; tiles *= 2) {
    if (row_panels < 4 * tiles) return tiles;  // two panels each, or more
  }
  return kTiles * panels_of(row_panels, kTiles * most);
}

void run(const Product& p) {
  if (p.M == 0 || p.N == 0) return;
  count_flops(2 * p.M * p.N * p.K);
  const Index row_panels = panels_of(p.M, kRows), column_panels = panels_of(p.N, kColumns);
  Index row_tiles = row_tiles_of(row_panels, p.K);
  Index column_tiles = std::clamp<Index>(kTiles / row_tiles, 1, std::max<Index>(1, column_panels));
  constexpr Index kSmall = 64 * 64 * 64;  // below this a second thread costs more than it brings
  if (p.M * p.N * p.K <= kSmall) row_tiles = column_tiles = 1;
  parallel_for(row_tiles * column_tiles, 1, [&](Index tile, Index) {
    const Index row = tile / column_tiles, column = tile % column_tiles;
    const Index begin = row * row_panels / row_tiles * kRows,
                end = std::min(p.M, (row + 1) * row_panels / row_tiles * kRows);
    const Index first = column * column_panels / column_tiles, last = (column + 1) * column_panels / column_tiles;
    multiply_tile(p, begin, end, first, last);
    if (p.epilogue.finish != nullptr) {
      (*p.epilogue.finish)({begin, end, first * kColumns, std::min(p.N, last * kColumns)});
    }
  });
}

/// C = A B + beta * C for a C that is small beside its sums, as the gradient of weights is: both operands are read a block of
/// K at a time, in tiles of C so large that both blocks stay in the cache of a core, and `parts` ranges of K are summed up
/// apart, so that each core reads the rows that it has.
void sum_of_parts(Index M, Index N, Index K, const Matrix& A, const Matrix& B, real beta, real* C, Index stride,
                  Index parts) {
  constexpr Index kTileColumns = 256, kTileSides = 544;  // of a tile: most columns; most rows and columns together
  const Index column_tiles = panels_of(N, kTileColumns);
  const Index columns = panels_of(panels_of(N, column_tiles), kColumns) * kColumns;
  const Index row_tiles = panels_of(M, kTileSides - std::min(N, columns));
  const Index rows = panels_of(panels_of(M, row_tiles), kRows) * kRows;
  const Index size = M * N;
  const PoolArray sums = pool_array((parts - 1) * size);  // the first sum goes to C
  count_flops(2 * M * N * K);
  parallel_for(parts * row_tiles * column_tiles, 1, [&](Index tile, Index) {
    const Index column = tile % column_tiles * columns, row = tile / column_tiles % row_tiles * rows;
    if (row >= M || column >= N) return;
    const Index p = tile / (column_tiles * row_tiles), out_stride = p == 0 ? stride : N;
    const Index begin = p * K / parts, end = (p + 1) * K / parts, depth = block_depth(end - begin);
    real* out = (p == 0 ? C : sums.get() + (p - 1) * size) + row * out_stride + column;
    for (Index k = begin; k < end; k += depth) {
      gemm_serial(std::min(rows, M - row), std::min(columns, N - column), std::min(depth, end - k), 1, part(A, row, k),
                  part(B, k, column),
                  k > begin ? 1
                  : p > 0   ? 0
                            : beta,
                  out, out_stride);
    }
  });
  parallel_for(M, std::max<Index>(1, 8192 / N), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      for (Index p = 1; p < parts; ++p) {
        const real* in = sums.get() + (p - 1) * size + r * N;
        real* out = C + r * stride;
#pragma omp simd
        for (Index i = 0; i < N; ++i) out[i] += in[i];
      }
    }
  });
}

}  // namespace

PackedMatrix::PackedMatrix(Index K, Index N, const Matrix& B) : K_(K), N_(N), matrix_(B) {
  const Index panels = panels_of(N, kColumns);
  panels_ = static_cast<real*>(pool_allocate(static_cast<std::size_t>(panels * K * kColumns) * sizeof(real)));
  const Index tile = std::max<Index>(1, 32768 / (std::max<Index>(K, 1) * kColumns));
  parallel_for(panels, tile, [&](Index begin, Index end) {
    for (Index panel = begin; panel < end; ++panel) pack_panel(K, N, B, panel, panels_ + panel * K * kColumns);
  });
}

PackedMatrix::~PackedMatrix() { pool_free(panels_); }

void gemm(Index M, const Matrix& A, const PackedMatrix& B, real beta, real* C, Index stride, const Epilogue& epilogue) {
  run({M, B.columns(), B.rows(), A, B.panels(), 1, beta, C, stride, epilogue});
}

void gemm(Index M, Index N, Index K, const Matrix& A, const Matrix& B, real beta, real* C, Index stride,
          const Epilogue& epilogue) {
  constexpr Index kLarge = 256 * 1024, kLeastDepth = 512;
  const Index size = M * N;
  if (A.transposed && !B.transposed && size > 0 && size <= kLarge && K >= 2 * kLeastDepth && epilogue.bias == nullptr &&
      !epilogue.relu && epilogue.finish == nullptr) {
    const Index most = size <= kLarge / 16 ? 8 : size <= kLarge / 4 ? 4 : 2;
    return sum_of_parts(M, N, K, A, B, beta, C, stride, std::min(most, K / kLeastDepth / 2 * 2));
  }
  gemm(M, A, PackedMatrix(K, N, B), beta, C, stride, epilogue);
}

void gemm_serial(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C,
                 Index stride) {
  const Index panels = panels_of(N, kColumns);
  const PoolArray packed = pool_array(panels * K * kColumns);
  for (Index panel = 0; panel < panels; ++panel) pack_panel(K, N, B, panel, packed.get() + panel * K * kColumns);
  multiply_tile({M, N, K, A, packed.get(), alpha, beta, C, stride, {}}, 0, M, 0, panels);
}

}  // namespace weft

#endif  // WEFT_VECTOR_GEMM

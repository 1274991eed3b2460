// Sums, transposes and copies. Reductions add in an order that depends on the sizes alone.
#include <algorithm>

#include "weft/core/column_sums.h"
#include "weft/core/kernels.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

void put(Dst dst, Index i, real value) { dst.data[i] = dst.beta == 0 ? value : dst.beta * dst.data[i] + value; }

}  // namespace

double sum_all(Index size, const real* x) {
  constexpr Index kPiece = 4096;
  double total = 0;
  for (Index begin = 0; begin < size; begin += kPiece) {
    total += static_cast<double>(simd::sum(std::min(kPiece, size - begin), x + begin));
  }
  return total;
}

void sum_rows(Index T, Index D, const real* x, Dst dst) {
  if (!dst) return;
  const Index tile = tile_rows(T, D, 64 * 1024);
  ColumnSums sums(T, D, tile);
  parallel_for(T, tile, [&](Index begin, Index end) { add_rows(end - begin, D, x + begin * D, sums.of_tile(begin)); });
  sums.finish(dst);
}

void sum_columns(Index T, Index D, const real* x, Dst dst) {
  if (!dst) return;
  for (Index t = 0; t < T; ++t) put(dst, t, simd::sum(D, x + t * D));
}

void transpose(Index T, Index D, const real* x, Dst y) {
  if (!y) return;
  constexpr Index kBlock = 32;
  parallel_for(D, kBlock, [&](Index begin, Index end) {
    for (Index block = 0; block < T; block += kBlock) {
      for (Index d = begin; d < end; ++d) {
        for (Index t = block; t < std::min(block + kBlock, T); ++t) put(y, d * T + t, x[t * D + d]);
      }
    }
  });
}

void copy_block(Index T, Index D, const real* x, Index from, Dst y, Index to) {
  if (!y) return;
  parallel_for(T, std::max<Index>(1, 16384 / std::max<Index>(D, 1)), [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) accumulate(D, x + t * from, {y.data + t * to, y.beta});
  });
}

}  // namespace weft

// Rows looked up in tables: embeddings and positions.
#include <algorithm>

#include "weft/core/column_sums.h"
#include "weft/core/kernels.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

constexpr Index kColumnTile = 64;  // backward: each tile of columns goes through all rows in order

/// Prepares a table of `rows` rows for being added to.
void start_table(Index rows, Index D, Dst table) {
  if (table.beta == 1) return;
  parallel_for(rows, tile_rows(rows, D, 64 * 1024), [&](Index begin, Index end) {
    real* const from = table.data + begin * D;
    if (table.beta == 0) {
      std::fill_n(from, (end - begin) * D, real{0});
    } else {
      for (Index i = 0; i < (end - begin) * D; ++i) from[i] *= table.beta;
    }
  });
}

}  // namespace

void gather_rows(std::span<const TokenId> ids, Index D, real factor, const real* table, real* y) {
  parallel_for(static_cast<Index>(ids.size()), tile_rows(static_cast<Index>(ids.size()), D, 16384),
               [&](Index begin, Index end) {
                 for (Index t = begin; t < end; ++t) {
                   const real* from = table + static_cast<Index>(ids[static_cast<std::size_t>(t)]) * D;
                   real* to = y + t * D;
#pragma omp simd
                   for (Index d = 0; d < D; ++d) to[d] = factor * from[d];
                 }
               });
}

void scatter_rows(std::span<const TokenId> ids, Index V, Index D, real factor, const real* dy, Dst dtable) {
  if (!dtable) return;
  start_table(V, D, dtable);
  parallel_for(D, kColumnTile, [&](Index begin, Index end) {
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const real* from = dy + static_cast<Index>(t) * D;
      real* to = dtable.data + static_cast<Index>(ids[t]) * D;
#pragma omp simd
      for (Index d = begin; d < end; ++d) to[d] += factor * from[d];
    }
  });
}

void add_positions(std::span<const Index> offsets, Index D, Index first, const real* x, const real* table, real* y) {
  parallel_for(static_cast<Index>(offsets.size()) - 1, 1, [&](Index sequence, Index) {
    const Index begin = offsets[static_cast<std::size_t>(sequence)],
                end = offsets[static_cast<std::size_t>(sequence) + 1];
    const real* rows = table + first * D;
#pragma omp simd
    for (Index i = 0; i < (end - begin) * D; ++i) y[begin * D + i] = x[begin * D + i] + rows[i];
  });
}

void add_positions_backward(std::span<const Index> offsets, Index P, Index D, Index first, const real* dy, Dst dtable) {
  if (!dtable) return;
  start_table(P, D, dtable);
  parallel_for(D, kColumnTile, [&](Index begin, Index end) {
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      for (Index t = offsets[s]; t < offsets[s + 1]; ++t) {
        real* to = dtable.data + (first + t - offsets[s]) * D;
#pragma omp simd
        for (Index d = begin; d < end; ++d) to[d] += dy[t * D + d];
      }
    }
  });
}

}  // namespace weft

// Sums over the rows of a matrix, made along with something else: each tile of rows has sums of its own, which are added
// up in the order of the tiles, so that the bits do not depend on which thread does which tile. For kernel files only.
#pragma once

#include <algorithm>

#include "weft/core/kernels.h"
#include "weft/core/simd.h"
#include "weft/core/tensor.h"
#include "weft/core/threads.h"

namespace weft {

/// Rows a tile, so that it has about `elements` elements and all tiles are about equally long.
inline Index tile_rows(Index T, Index D, Index elements) {
  const Index tiles = std::clamp<Index>(T * D / elements, 1, std::max<Index>(T, 1));
  return std::max<Index>(1, (T + tiles - 1) / tiles);
}

/// Adds rows [T, D] to sums [D], four at a time.
inline void add_rows(Index T, Index D, const real* x, real* sums) {
  Index t = 0;
  for (; t + 4 <= T; t += 4, x += 4 * D) {
    simd::each(D, [=](auto zero, Index d) {
      using V = decltype(zero);
      simd::put(sums + d, 1,
                (simd::get<V>(x + d) + simd::get<V>(x + D + d)) +
                    (simd::get<V>(x + 2 * D + d) + simd::get<V>(x + 3 * D + d)));
    });
  }
  for (; t < T; ++t, x += D) {
    simd::each(D, [=](auto zero, Index d) { simd::put(sums + d, 1, simd::get<decltype(zero)>(x + d)); });
  }
}

/// The column sums of a matrix [T, D] that is worked on in tiles of `tile` rows.
class ColumnSums {
 public:
  ColumnSums(Index T, Index D, Index tile) : D_(D), tile_(tile), tiles_((T + tile - 1) / tile), sums_({tiles_, D}) {}

  /// The sums [D] of the tile that begins with row `begin`, all 0: to be called once by the tile.
  real* of_tile(Index begin) {
    real* sums = sums_.data() + begin / tile_ * D_;
    std::fill_n(sums, D_, real{0});
    return sums;
  }

  /// Writes the sums over all rows, once every tile is done.
  void finish(Dst dst) const {
    if (!dst) return;
    parallel_for(D_, 1024, [&](Index begin, Index end) {
      simd::each(end - begin, [&](auto zero, Index i) {
        using V = decltype(zero);
        V total = zero;
        for (Index tile = 0; tile < tiles_; ++tile) total += simd::get<V>(sums_.data() + tile * D_ + begin + i);
        simd::put(dst.data + begin + i, dst.beta, total);
      });
    });
  }

 private:
  Index D_, tile_, tiles_;
  Tensor sums_;
};

}  // namespace weft

// Layer normalisation, alone or together with the residual connection before it: one pass over the rows on the way forward
// and one on the way back, in which a row stays in the cache nearest to the core.
#include <algorithm>
#include <array>
#include <cmath>

#include "weft/core/column_sums.h"
#include "weft/core/dropout_factors.h"
#include "weft/core/kernels.h"
#include "weft/core/memory.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

constexpr Index kTile = 16 * 1024;  // elements

/// Where element `offset` of a destination is.
Dst at(Dst dst, Index offset) { return dst ? Dst{dst.data + offset, dst.beta} : Dst{}; }

/// Normalises a row x, whose sum is given; keeps mean and 1 / sqrt(variance + epsilon) unless null.
void norm_row(Index D, const real* x, real sum, const real* gain, const real* shift, real epsilon, real* y, real* mean,
              real* rstd) {
  const real m = sum / static_cast<real>(D);
  const real r = 1 / std::sqrt(simd::sum_of_squares(D, x, m) / static_cast<real>(D) + epsilon);
  simd::each(D, [=](auto zero, Index d) {
    using V = decltype(zero);
    simd::put(y + d, 0, (simd::get<V>(x + d) - m) * r * simd::get<V>(gain + d) + simd::get<V>(shift + d));
  });
  if (mean != nullptr) *mean = m;
  if (rstd != nullptr) *rstd = r;
}

}  // namespace

void layer_norm(Index T, Index D, const real* x, const real* gain, const real* shift, real epsilon, real* y, real* mean,
                real* rstd) {
  parallel_for(T, tile_rows(T, D, kTile), [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const real* row = x + t * D;
      norm_row(D, row, simd::sum(D, row), gain, shift, epsilon, y + t * D, at({mean}, t).data, at({rstd}, t).data);
    }
  });
}

void add_norm(const DropoutMask& dropout, Index T, Index D, const real* x, const real* z, const real* gain,
              const real* shift, real epsilon, real* s, real* y, real* mean, real* rstd) {
  const DropoutFactors make(dropout);
  const bool drops = dropout.probability > 0;
  parallel_for(T, tile_rows(T, D, kTile), [&](Index begin, Index end) {
    std::array<real, DropoutFactors::kPiece> piece;
    const real* const factors = piece.data();
    for (Index t = begin; t < end; ++t) {
      real sum = 0;
      for (Index d = 0; d < D; d += DropoutFactors::kPiece) {
        const Index length = std::min(DropoutFactors::kPiece, D - d);
        const real *const a = x + t * D + d, *const b = z + t * D + d;
        real* const out = s + t * D + d;
        if (drops) make.piece(t, d, length, piece.data());
        sum += simd::sums<1>(length, [=](auto zero, Index i) {
          using V = decltype(zero);
          V v = simd::get<V>(b + i);
          if (drops) v *= simd::get<V>(factors + i);
          v += simd::get<V>(a + i);
          simd::put(out + i, 0, v);
          return std::array<V, 1>{v};
        })[0];
      }
      norm_row(D, s + t * D, sum, gain, shift, epsilon, y + t * D, mean + t, rstd + t);
    }
  });
}

bool can_undo_norm(Index D, const real* gain, const real* shift) {
  // (y - shift) / gain is then off by some 17 units of the last place for a y of about the gain's size.
  for (Index d = 0; d < D; ++d) {
    const real size = std::abs(gain[d]);
    if (!(size >= std::max<real>(1, std::abs(shift[d])) / 16 && size < 1e6)) return false;
  }
  return true;
}

void add_norm_backward(const DropoutMask& dropout, Index T, Index D, const NormInput& input, const real* gain,
                       const real* rstd, const real* dy, Dst dx, Dst dz, Dst dgain, Dst dshift) {
  const Index tile = tile_rows(T, D, kTile);
  const DropoutFactors make(dropout);
  const bool drops = dz && dropout.probability > 0;
  ColumnSums gain_sums(T, D, tile), shift_sums(T, D, tile);
  const bool undo = input.mean == nullptr;
  const PoolArray inverse = pool_array(undo ? D : 0);
  for (Index d = 0; undo && d < D; ++d) inverse[static_cast<std::size_t>(d)] = 1 / gain[d];
  parallel_for(T, tile, [&](Index begin, Index end) {
    std::array<real, DropoutFactors::kPiece> piece;
    const real* const factors = piece.data();
    real *const gains = gain_sums.of_tile(begin), *const shifts = shift_sums.of_tile(begin);
    for (Index t = begin; t < end; ++t) {
      const real *const row = input.rows + t * D, *const g = dy + t * D, *const w = gain;
      const real *const shift = input.shift, *const over = inverse.get();
      const real m = undo ? 0 : input.mean[t], r = rstd[t];
      const auto normalised = [=](auto zero, Index d) {
        using V = decltype(zero);
        if (undo) return static_cast<V>((simd::get<V>(row + d) - simd::get<V>(shift + d)) * simd::get<V>(over + d));
        return static_cast<V>((simd::get<V>(row + d) - m) * r);
      };
      // With n = normalised and h = dy * gain: ds = r (h - mean(h) - n mean(h n)).
      const auto sum = simd::sums<2>(D, [=](auto zero, Index d) {
        using V = decltype(zero);
        const V one = simd::get<V>(g + d), n = normalised(zero, d), h = one * simd::get<V>(w + d);
        simd::put(gains + d, 1, one * n);
        simd::put(shifts + d, 1, one);
        return std::array<V, 2>{h, h * n};
      });
      const real mean_h = sum[0] / static_cast<real>(D), mean_hn = sum[1] / static_cast<real>(D);
      for (Index first = 0; first < D; first += DropoutFactors::kPiece) {
        const Index length = std::min(DropoutFactors::kPiece, D - first);
        if (drops) make.piece(t, first, length, piece.data());
        const Dst to_x = at(dx, t * D + first), to_z = at(dz, t * D + first);
        simd::each(length, [=](auto zero, Index i) {
          using V = decltype(zero);
          const V n = normalised(zero, first + i);
          const V ds = r * (simd::get<V>(g + first + i) * simd::get<V>(w + first + i) - mean_h - n * mean_hn);
          if (to_x) simd::put(to_x.data + i, to_x.beta, ds);
          if (to_z) simd::put(to_z.data + i, to_z.beta, drops ? ds * simd::get<V>(factors + i) : ds);
        });
      }
    }
  });
  gain_sums.finish(dgain);
  shift_sums.finish(dshift);
}

}  // namespace weft

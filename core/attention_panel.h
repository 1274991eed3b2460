// Attention of some queries of one head, a panel: a query in each lane of one or two vectors, an array [keys, queries] for
// scores, weights and their gradients. A softmax then needs no sums across lanes, and everything a query gets is a sum over
// its keys in order: its bits do not depend on the other queries. Lanes without a query hold what another one has, and
// nobody reads them. For kernels_attention.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/core/simd.h"
#include "weft/core/small_product.h"

namespace weft::panel {

using simd::kLanes;
using simd::load;
using simd::store;
using simd::Vec;

/// Queries [first, first + count) of a sequence, which see keys [0, seen); query i up to key i only if causal.
struct Panel {
  Index first, count, seen;
  bool causal;
};

/// panel[d, r] = rows[r, d] for `count` rows of `width` columns; lanes without a row repeat the last one.
template <Index kVectors>
inline void from_rows(Index count, Index width, const real* rows, Index stride, real* panel) {
  for (Index v = 0; v < kVectors; ++v, panel += kLanes) {
    const real* row[kLanes];
    for (Index i = 0; i < kLanes; ++i) row[i] = rows + std::min(v * kLanes + i, count - 1) * stride;
    Index d = 0;
    for (; d + kLanes <= width; d += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (Index i = 0; i < kLanes; ++i) square[i] = load(row[i] + d);
      simd::transpose(square);
#pragma GCC unroll 16
      for (Index i = 0; i < kLanes; ++i) store(panel + (d + i) * kVectors * kLanes, square[i]);
    }
    for (; d < width; ++d) {
      for (Index i = 0; i < kLanes; ++i) panel[d * kVectors * kLanes + i] = row[i][d];
    }
  }
}

/// panel[k, r] = keys[k] . queries[r] for the keys that are seen, where the queries are a panel too.
template <Index kVectors>
inline void products_with_keys(const Panel& panel, Index width, const real* keys, Index stride, const real* queries,
                               real* out) {
  constexpr Index kWidth = kVectors * kLanes;
  small_product(panel.seen, LeftMatrix<Index, Fixed<1>>{keys, stride, {}}, {queries, kWidth}, {out, kWidth, kWidth, 0},
                [&](Index, Index) {
                  return DepthRange{0, width};
                });
}

/// rows[r] = sum over k of panel[k, r] * keys[k] + beta * rows[r], for keys that row r sees.
template <Index kVectors>
inline void sums_over_keys(const Panel& panel, const real* weights, const RightMatrix& keys,
                           const ProductTarget& rows) {
  small_product(panel.count, LeftMatrix<Fixed<1>, Fixed<kVectors * kLanes>>{weights, {}, {}}, keys, rows,
                [&](Index first, Index count) {
                  return DepthRange{0, panel.causal ? std::min(panel.first + first + count, panel.seen) : panel.seen};
                });
}

/// keys[k] = sum over r of panel[k, r] * rows[r] + beta * keys[k], for the rows that see key k.
template <Index kVectors>
inline void sums_over_queries(const Panel& panel, const real* weights, const RightMatrix& rows,
                              const ProductTarget& keys) {
  small_product(panel.seen, LeftMatrix<Fixed<kVectors * kLanes>, Fixed<1>>{weights, {}, {}}, rows, keys,
                [&](Index first, Index) {
                  return DepthRange{panel.causal ? std::max<Index>(0, first - panel.first) : 0, panel.count};
                });
}

/// Gives the keys that a causal mask hides from a query a score of minus infinity.
template <Index kVectors>
inline void hide_later_keys(const Panel& panel, real* scores) {
  if (!panel.causal) return;
  const Vec lanes = simd::lane_numbers(), hidden = Vec{} - std::numeric_limits<real>::infinity();
  for (Index k = panel.first + 1; k < panel.seen; ++k) {
    for (Index v = 0; v < kVectors; ++v) {
      real* const score = scores + (k * kVectors + v) * kLanes;
      const auto first_seeing = static_cast<real>(k - panel.first - v * kLanes);
      store(score, lanes < Vec{} + first_seeing ? hidden : load(score));
    }
  }
}

/// Products of queries and keys to weights, in place, and the logarithm of each sum.
template <Index kVectors>
inline void softmax(const Panel& panel, real scale, real* p, real* log_sums) {
  if (panel.seen == 0) {
    std::fill_n(log_sums, kVectors * kLanes, real{0});
    return;
  }
  for (Index v = 0; v < kVectors; ++v, p += kLanes, log_sums += kLanes) {
    constexpr Index kStride = kVectors * kLanes;
    Vec largest = load(p), sum{};
    for (Index k = 1; k < panel.seen; ++k) {
      const Vec score = load(p + k * kStride);
      largest = score > largest ? score : largest;
    }
    largest *= scale;
    for (Index k = 0; k < panel.seen; ++k) {
      const Vec weight = simd::exp_negative(load(p + k * kStride) * scale - largest);
      store(p + k * kStride, weight);
      sum += weight;
    }
    const Vec inverse = 1 / sum;
    for (Index k = 0; k < panel.seen; ++k) store(p + k * kStride, load(p + k * kStride) * inverse);
    store(log_sums, largest + simd::log_positive(sum));
  }
}

/// From products of queries and keys, and gradients for what multiplies V: to what multiplies V, and gradients for those
/// products.
template <Index kVectors, bool kDrop>
inline void softmax_backward(const Panel& panel, const real* log_sums, const real* factors, real scale, real* p,
                             real* d_p) {
  constexpr Index kStride = kVectors * kLanes;
  for (Index v = 0; v < kVectors; ++v, p += kLanes, d_p += kLanes, factors += kDrop ? kLanes : 0) {
    const Vec shift = load(log_sums + v * kLanes);
    Vec mean{};
    for (Index k = 0; k < panel.seen; ++k) {
      const Vec weight = simd::exp_negative(load(p + k * kStride) * scale - shift);
      store(p + k * kStride, weight);
      if constexpr (kDrop) store(d_p + k * kStride, load(d_p + k * kStride) * load(factors + k * kStride));
      mean += weight * load(d_p + k * kStride);
    }
    for (Index k = 0; k < panel.seen; ++k) {
      const Vec weight = load(p + k * kStride);
      store(d_p + k * kStride, weight * (load(d_p + k * kStride) - mean) * scale);
      if constexpr (kDrop) store(p + k * kStride, weight * load(factors + k * kStride));
    }
  }
}

}  // namespace weft::panel

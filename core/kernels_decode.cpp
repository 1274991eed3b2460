// Attention and choice while decoding: few queries, each by itself, so that no row's result depends on other rows. A past is
// reached through ancestors: beam search reorders hypotheses without moving keys and values.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/core/kernels.h"
#include "weft/core/memory.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

using simd::kLanes;
using simd::Vec;

constexpr Index kGroup = 4;  // keys whose scores are made together

/// The dot products of q with four keys.
void dot_four(Index n, const real* q, const std::array<const real*, kGroup>& keys, real* products) {
  Vec sums[kGroup] = {};
  Index d = 0;
  for (; d + kLanes <= n; d += kLanes) {
    const Vec one = simd::load(q + d);
    for (std::size_t i = 0; i < kGroup; ++i) sums[i] += one * simd::load(keys[i] + d);
  }
  simd::lane_sums(sums, products);
  for (; d < n; ++d) {
    for (std::size_t i = 0; i < kGroup; ++i) products[i] += q[d] * keys[i][d];
  }
}

/// out[d] = sum over keys of weights[t] * value(t)[d], for N vectors of elements.
template <int N, class ValueAt>
void mix(Index keys, const real* weights, ValueAt value, real* out) {
  Vec sums[N] = {};
  for (Index t = 0; t < keys; ++t) {
    const real* from = value(t);
    for (int i = 0; i < N; ++i) sums[i] += weights[t] * simd::load(from + i * kLanes);
  }
  std::memcpy(out, sums, sizeof sums);
}

/// One head of one query: out = softmax(q key(t) / sqrt(d_head)) value(t). `weights` has room for `keys` rounded up to a
/// multiple of kGroup.
template <class KeyAt, class ValueAt>
void attend(Index d_head, Index keys, const real* q, KeyAt key, ValueAt value, real* weights, real* out) {
  for (Index t = 0; t < keys; t += kGroup) {
    const auto at = [&](Index i) { return key(std::min(t + i, keys - 1)); };
    dot_four(d_head, q, {at(0), at(1), at(2), at(3)}, weights + t);
  }
  const real scale = 1 / std::sqrt(static_cast<real>(d_head)), largest = simd::max(keys, weights);
#pragma omp simd
  for (Index t = 0; t < keys; ++t) weights[t] = simd::exp(scale * (weights[t] - largest));
  const real inverse = keys == 0 ? 0 : 1 / simd::sum(keys, weights);
#pragma omp simd
  for (Index t = 0; t < keys; ++t) weights[t] *= inverse;
  constexpr Index kWide = 4 * kLanes;
  Index d = 0;
  const auto value_at = [&](Index t) { return value(t) + d; };
  for (; d + kWide <= d_head; d += kWide) mix<4>(keys, weights, value_at, out + d);
  for (; d + kLanes <= d_head; d += kLanes) mix<1>(keys, weights, value_at, out + d);
  for (; d < d_head; ++d) {
    out[d] = 0;
    for (Index t = 0; t < keys; ++t) out[d] += weights[t] * value_at(t)[0];
  }
}

/// How many tasks of `work` multiplications make a tile that is worth another thread.
Index tile_of(Index work) { return std::max<Index>(1, 16384 / std::max<Index>(work, 1)); }

}  // namespace

void cached_attention(Index rows, const CachedOperands& a, real* O) {
  const auto steps = static_cast<Index>(a.past.size());
  const Index D = a.heads * a.d_head;
  parallel_for(rows * a.heads, tile_of(2 * steps * a.d_head), [&](Index begin, Index end) {
    const PoolArray weights = pool_array(steps + kGroup);
    for (Index task = begin; task < end; ++task) {
      const Index r = task / a.heads, column = task % a.heads * a.d_head;
      const Index* ancestors = a.ancestors.data() + r * steps;
      const auto key = [&](Index t) { return a.past[static_cast<std::size_t>(t)] + ancestors[t] * 2 * D + column; };
      attend(
          a.d_head, steps, a.Q + r * a.q_stride + column, key, [&](Index t) { return key(t) + D; }, weights.get(),
          O + r * D + column);
    }
  });
}

void memory_attention(const MemoryOperands& a, real* O) {
  const auto sequences = static_cast<Index>(a.query_offsets.size()) - 1;
  const Index D = a.heads * a.d_head, queries = a.query_offsets.back(), keys = a.key_offsets.back();
  const Index work =
      2 * queries * keys * a.d_head / std::max<Index>(1, sequences * sequences);  // of a head, on average
  parallel_for(sequences * a.heads, tile_of(work), [&](Index begin, Index end) {
    const PoolArray weights = pool_array(keys + kGroup);
    for (Index task = begin; task < end; ++task) {
      const auto s = static_cast<std::size_t>(task / a.heads);
      const real* first = a.KV + a.key_offsets[s] * 2 * D + task % a.heads * a.d_head;
      for (Index r = a.query_offsets[s]; r < a.query_offsets[s + 1]; ++r) {
        const Index at = r * D + task % a.heads * a.d_head;
        attend(
            a.d_head, a.key_offsets[s + 1] - a.key_offsets[s], a.Q + at, [&](Index t) { return first + t * 2 * D; },
            [&](Index t) { return first + t * 2 * D + D; }, weights.get(), O + at);
      }
    }
  });
}

void best_columns(Index T, Index V, const real* x, Index first, Index count, TokenId* columns, real* log_sum) {
  constexpr Index kBlock = 64;
  constexpr real kLowest = -std::numeric_limits<real>::infinity();
  parallel_for(T, std::max<Index>(1, 8192 / std::max<Index>(V, 1)), [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      const real* row = x + t * V;
      TokenId* best = columns + t * count;
      Index found = 0;
      real least = kLowest, largest = simd::max(first, row);  // least: of a full list
      for (Index block = first; block < V; block += kBlock) {
        const Index block_end = std::min(block + kBlock, V);
        const real block_largest = simd::max(block_end - block, row + block);
        largest = std::max(largest, block_largest);
        if (!(block_largest > least)) continue;  // most blocks
        for (Index v = block; v < block_end; ++v) {
          if (!(row[v] > least)) continue;
          Index place = found < count ? found++ : count - 1;
          for (; place > 0 && row[v] > row[best[place - 1]]; --place) best[place] = best[place - 1];
          best[place] = static_cast<TokenId>(v);
          if (found == count) least = row[best[count - 1]];
        }
      }
      std::fill(best + found, best + count, TokenId{-1});
      real sum = 0;
      for (Index block = 0; block < V; block += kBlock) {
        real terms[kBlock];
        const Index width = std::min(kBlock, V - block);
#pragma omp simd
        for (Index i = 0; i < width; ++i) terms[i] = simd::exp(row[block + i] - largest);
        sum += simd::sum(width, terms);
      }
      log_sum[t] = largest + std::log(sum);
    }
  });
}

}  // namespace weft

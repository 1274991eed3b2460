// Scaled dot-product attention on packed batches. One task is one head of one sequence, several in a tile where they are
// small; it goes through the queries in panels (attention_panel.h) and keeps [keys, queries of a panel] only: backward makes
// the weights again from log_sum. O, log_sum, weights and dQ of a query depend on its row and the keys it sees only, not on
// how many other queries or keys there are; dK and dV depend on the sequence only.
#include <algorithm>
#include <cmath>

#include "weft/core/attention_panel.h"
#include "weft/core/flops.h"
#include "weft/core/kernels.h"
#include "weft/core/memory.h"
#include "weft/core/small_product.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

using panel::Panel;
using simd::kLanes;

constexpr Index kMostVectors = 2;  // of queries in a panel
constexpr Index kMostQueries = kMostVectors * kLanes;

Index whole_vectors(Index elements) { return (elements + kLanes - 1) / kLanes * kLanes; }

// ---- tasks ----------------------------------------------------------------------------------------------------------

/// One head of one sequence.
struct Head {
  std::size_t sequence;
  Index head, q_begin, queries, k_begin, keys;
  Index column;  // where the head begins in a row
};

/// Memory for one head after the other.
struct Scratch {
  explicit Scratch(const AttentionOperands& a, bool backward) {
    Index keys = 0;
    for (std::size_t s = 0; s + 1 < a.key_offsets.size(); ++s) {
      keys = std::max(keys, a.key_offsets[s + 1] - a.key_offsets[s]);
    }
    const Index width = whole_vectors(a.d_head), columns = whole_vectors(keys);
    const bool drop = a.dropout.probability > 0, copy = width != a.d_head;
    const Index sizes[] = {kMostQueries * width,
                           kMostQueries * keys,
                           backward ? kMostQueries * width : 0,
                           backward ? kMostQueries * keys : 0,
                           drop ? kMostQueries * columns : 0,
                           drop ? kMostQueries * columns : 0,
                           copy ? width * keys : 0,
                           copy && backward ? width * kMostQueries : 0,
                           copy && backward ? width * kMostQueries : 0};
    real** const parts[] = {&q, &p, &d_o, &d_p, &factor_rows, &factors, &copied_keys, &copied_q, &copied_d_o};
    Index total = 0;
    for (const Index size : sizes) total += size;
    memory_ = pool_array(total);
    real* next = memory_.get();
    for (std::size_t i = 0; i < std::size(sizes); next += sizes[i++]) *parts[i] = next;
  }

  // Panels [d_head or keys, queries]: queries, weights, and for backward their gradients; factors of dropout.
  real *q, *p, *d_o, *d_p, *factors;
  real* factor_rows;                          // [queries, keys]
  real *copied_keys, *copied_q, *copied_d_o;  // rows of whole vectors, where d_head is no multiple of them

 private:
  PoolArray memory_;
};

/// How many pairs of a query and a key that it sees there are in all heads.
Index pairs(const AttentionOperands& a) {
  Index sum = 0;
  for (std::size_t s = 0; s + 1 < a.query_offsets.size(); ++s) {
    const Index queries = a.query_offsets[s + 1] - a.query_offsets[s], keys = a.key_offsets[s + 1] - a.key_offsets[s];
    sum += a.causal ? queries * (queries + 1) / 2 : queries * keys;
  }
  return sum * a.heads;
}

/// Head number `index`, counting heads within sequences.
Head head_at(const AttentionOperands& a, Index index) {
  const auto s = static_cast<std::size_t>(index / a.heads);
  const Index h = index % a.heads;
  return {s,
          h,
          a.query_offsets[s],
          a.query_offsets[s + 1] - a.query_offsets[s],
          a.key_offsets[s],
          a.key_offsets[s + 1] - a.key_offsets[s],
          h * a.d_head};
}

/// Calls task(head, scratch) for all heads, several of them in a tile where they are small, and fetch(next head) before.
template <class Fetch, class Task>
void for_heads(const AttentionOperands& a, bool backward, Fetch fetch, Task task) {
  const Index sequences = static_cast<Index>(a.query_offsets.size()) - 1;
  const Index count = sequences * a.heads, products = pairs(a) * a.d_head;
  count_flops((backward ? 8 : 4) * products);
  if (count <= 0) return;
  constexpr Index kTileProducts = 500'000, kLeastTiles = 16;
  const Index small_enough = std::max<Index>(1, count / kLeastTiles);
  const Index tile = std::clamp<Index>(kTileProducts / (products / count + 1), 1, small_enough);
  parallel_for(count, tile, [&](Index begin, Index end) {
    Scratch scratch(a, backward);
    for (Index index = begin; index < end; ++index) {
      if (index + 1 < end) fetch(head_at(a, index + 1));
      task(head_at(a, index), scratch);
    }
  });
}

/// Asks for the columns of a head in `count` rows, to be read or written soon. Short sequences are a few lines here and a
/// few there, which the CPU does not foresee; it does foresee long ones, which would also be too much at once.
template <bool kWrite>
void fetch_rows(const AttentionOperands& a, Index count, const real* rows, Index stride) {
  constexpr Index kMostRows = 64;
  for (Index r = 0; r < std::min(count, kMostRows); ++r) {
    for (Index d = 0; d < a.d_head; d += kLanes) __builtin_prefetch(rows + r * stride + d, kWrite);
  }
}

/// Calls work(panel, vectors) for all queries of a head; the number of vectors is a Fixed.
template <class Work>
void for_panels(const AttentionOperands& a, const Head& head, Work work) {
  for (Index first = 0; first < head.queries; first += kMostQueries) {
    const Index count = std::min(kMostQueries, head.queries - first);
    const Panel panel{first, count, a.causal ? first + count : head.keys, a.causal};
    if (count > kLanes) {
      work(panel, Fixed<2>());
    } else {
      work(panel, Fixed<1>());
    }
  }
}

// ---- steps ----------------------------------------------------------------------------------------------------------

const real* q_at(const AttentionOperands& a, const Head& h, Index row) {
  return a.Q + (h.q_begin + row) * a.q_stride + h.column;
}
const real* k_at(const AttentionOperands& a, const Head& h) { return a.K + h.k_begin * a.k_stride + h.column; }
const real* v_at(const AttentionOperands& a, const Head& h) { return a.V + h.k_begin * a.v_stride + h.column; }

/// Rows that may be read in whole vectors: these, or a copy filled up with zeros.
RightMatrix right_matrix(const AttentionOperands& a, Index count, const real* rows, Index stride, real* copy) {
  const Index width = whole_vectors(a.d_head);
  if (width == a.d_head) return {rows, stride};
  for (Index r = 0; r < count; ++r) {
    std::copy_n(rows + r * stride, a.d_head, copy + r * width);
    std::fill(copy + r * width + a.d_head, copy + (r + 1) * width, real{0});
  }
  return {copy, width};
}

/// The factors of dropout, in a panel [keys seen, queries].
template <Index kVectors>
void dropout_panel(const AttentionOperands& a, const Head& h, const Panel& panel, const Scratch& scratch) {
  const Index stride = whole_vectors(panel.seen);
  for (Index r = 0; r < panel.count; ++r) {
    const auto row = static_cast<std::uint64_t>((h.q_begin + panel.first + r) * a.heads + h.head);
    dropout_factors(a.dropout, row, panel.seen, scratch.factor_rows + r * stride);
  }
  panel::from_rows<kVectors>(panel.count, panel.seen, scratch.factor_rows, stride, scratch.factors);
}

/// Where the weights of a head begin in the array of all weights.
Index weights_begin(const AttentionOperands& a, const Head& h) {
  Index begin = h.head * h.queries * h.keys;
  for (std::size_t s = 0; s < h.sequence; ++s) {
    begin += a.heads * (a.query_offsets[s + 1] - a.query_offsets[s]) * (a.key_offsets[s + 1] - a.key_offsets[s]);
  }
  return begin;
}

real scale_of(const AttentionOperands& a) { return 1 / std::sqrt(static_cast<real>(a.d_head)); }

}  // namespace

void attention(const AttentionOperands& a, real* O, real* log_sum, real* weights) {
  const Index width = a.heads * a.d_head;
  const auto fetch = [&](const Head& h) {
    fetch_rows<false>(a, h.queries, q_at(a, h, 0), a.q_stride);
    fetch_rows<false>(a, h.keys, k_at(a, h), a.k_stride);
    fetch_rows<false>(a, h.keys, v_at(a, h), a.v_stride);
    fetch_rows<true>(a, h.queries, O + h.q_begin * width + h.column, width);
  };
  for_heads(a, false, fetch, [&](const Head& h, Scratch& scratch) {
    const RightMatrix V = right_matrix(a, h.keys, v_at(a, h), a.v_stride, scratch.copied_keys);
    for_panels(a, h, [&](const Panel& panel, auto vectors) {
      constexpr Index kVectors = vectors(), kWidth = kVectors * kLanes;
      const Index query = h.q_begin + panel.first;
      panel::from_rows<kVectors>(panel.count, a.d_head, q_at(a, h, panel.first), a.q_stride, scratch.q);
      panel::products_with_keys<kVectors>(panel, a.d_head, k_at(a, h), a.k_stride, scratch.q, scratch.p);
      panel::hide_later_keys<kVectors>(panel, scratch.p);
      alignas(64) real log_sums[kWidth];
      panel::softmax<kVectors>(panel, scale_of(a), scratch.p, log_sums);
      for (Index r = 0; r < panel.count && log_sum != nullptr; ++r) {
        log_sum[(query + r) * a.heads + h.head] = log_sums[r];
      }
      for (Index r = 0; r < panel.count && weights != nullptr; ++r) {
        real* const out = weights + weights_begin(a, h) + (panel.first + r) * h.keys;
        for (Index k = 0; k < h.keys; ++k) out[k] = k < panel.seen ? scratch.p[k * kWidth + r] : 0;
      }
      if (a.dropout.probability > 0) {
        dropout_panel<kVectors>(a, h, panel, scratch);
#pragma omp simd
        for (Index i = 0; i < panel.seen * kWidth; ++i) scratch.p[i] *= scratch.factors[i];
      }
      panel::sums_over_keys<kVectors>(panel, scratch.p, V, {O + query * width + h.column, width, a.d_head, 0});
    });
  });
}

void attention_backward(const AttentionOperands& a, const real* log_sum, const real* dO, Dst dQ, Dst dK, Dst dV) {
  const Index width = a.heads * a.d_head;
  const auto fetch = [&](const Head& h) {
    fetch_rows<false>(a, h.queries, q_at(a, h, 0), a.q_stride);
    fetch_rows<false>(a, h.keys, k_at(a, h), a.k_stride);
    fetch_rows<false>(a, h.keys, v_at(a, h), a.v_stride);
    fetch_rows<false>(a, h.queries, dO + h.q_begin * width + h.column, width);
    if (dQ) fetch_rows<true>(a, h.queries, dQ.data + h.q_begin * a.q_stride + h.column, a.q_stride);
    if (dK) fetch_rows<true>(a, h.keys, dK.data + h.k_begin * a.k_stride + h.column, a.k_stride);
    if (dV) fetch_rows<true>(a, h.keys, dV.data + h.k_begin * a.v_stride + h.column, a.v_stride);
  };
  for_heads(a, true, fetch, [&](const Head& h, Scratch& scratch) {
    // A panel adds to the gradients of the keys it sees; the first one obeys the sinks' beta, as do keys it does not see.
    const auto keys_target = [&](Dst dst, Index stride, const Panel& panel) {
      real* const rows = dst.data + h.k_begin * stride + h.column;
      for (Index k = panel.seen; k < h.keys && panel.first == 0; ++k) {
        for (Index d = 0; d < a.d_head; ++d) rows[k * stride + d] = dst.beta == 0 ? 0 : dst.beta * rows[k * stride + d];
      }
      return ProductTarget{rows, stride, a.d_head, panel.first == 0 ? dst.beta : 1};
    };
    if (h.queries == 0) {
      if (dK) keys_target(dK, a.k_stride, {});
      if (dV) keys_target(dV, a.v_stride, {});
    }
    const RightMatrix K = right_matrix(a, h.keys, k_at(a, h), a.k_stride, scratch.copied_keys);
    for_panels(a, h, [&](const Panel& panel, auto vectors) {
      constexpr Index kVectors = vectors(), kWidth = kVectors * kLanes;
      const Index query = h.q_begin + panel.first, count = panel.count;
      const real* const q = q_at(a, h, panel.first);
      const real* const d_o = dO + query * width + h.column;
      panel::from_rows<kVectors>(count, a.d_head, q, a.q_stride, scratch.q);
      panel::from_rows<kVectors>(count, a.d_head, d_o, width, scratch.d_o);
      panel::products_with_keys<kVectors>(panel, a.d_head, k_at(a, h), a.k_stride, scratch.q, scratch.p);
      panel::products_with_keys<kVectors>(panel, a.d_head, v_at(a, h), a.v_stride, scratch.d_o, scratch.d_p);
      panel::hide_later_keys<kVectors>(panel, scratch.p);
      alignas(64) real log_sums[kWidth];
      for (Index r = 0; r < kWidth; ++r) log_sums[r] = log_sum[(query + std::min(r, count - 1)) * a.heads + h.head];
      if (a.dropout.probability > 0) {
        dropout_panel<kVectors>(a, h, panel, scratch);
        panel::softmax_backward<kVectors, true>(panel, log_sums, scratch.factors, scale_of(a), scratch.p, scratch.d_p);
      } else {
        panel::softmax_backward<kVectors, false>(panel, log_sums, nullptr, scale_of(a), scratch.p, scratch.d_p);
      }
      if (dQ) {
        panel::sums_over_keys<kVectors>(
            panel, scratch.d_p, K,
            {dQ.data + (h.q_begin + panel.first) * a.q_stride + h.column, a.q_stride, a.d_head, dQ.beta});
      }
      if (dK) {
        panel::sums_over_queries<kVectors>(panel, scratch.d_p, right_matrix(a, count, q, a.q_stride, scratch.copied_q),
                                           keys_target(dK, a.k_stride, panel));
      }
      if (dV) {
        panel::sums_over_queries<kVectors>(panel, scratch.p, right_matrix(a, count, d_o, width, scratch.copied_d_o),
                                           keys_target(dV, a.v_stride, panel));
      }
    });
  });
}

}  // namespace weft

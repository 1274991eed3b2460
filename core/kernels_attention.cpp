// Scaled dot-product attention on packed batches. One task is one head of one sequence; it works on blocks of queries in
// memory of its own, so that [queries, keys] is never kept: backward makes the weights again from log_sum.
#include <algorithm>
#include <cmath>
#include <memory>

#include "weft/core/gemm.h"
#include "weft/core/kernels.h"
#include "weft/core/memory.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

constexpr Index kBlock = 64;  // queries worked on at a time

struct PoolDelete {
  void operator()(real* block) const { pool_free(block); }
};

/// Memory of one task.
std::unique_ptr<real, PoolDelete> scratch(Index elements) {
  return std::unique_ptr<real, PoolDelete>(
      static_cast<real*>(pool_allocate(static_cast<std::size_t>(elements) * sizeof(real))));
}

/// One head of one sequence.
struct Head {
  std::size_t sequence;
  Index head, q_begin, queries, k_begin, keys;
  Index column;  // where the head begins in a row
};

/// A block of its queries: rows [first, first + count), which see keys [0, seen).
struct Block {
  Index first, count, seen;
};

template <class Task>
void for_heads(const AttentionOperands& a, Task task) {
  const Index sequences = static_cast<Index>(a.query_offsets.size()) - 1;
  parallel_for(sequences * a.heads, 1, [&](Index index, Index) {
    const auto s = static_cast<std::size_t>(index / a.heads);
    const Index h = index % a.heads;
    task(Head{s, h, a.query_offsets[s], a.query_offsets[s + 1] - a.query_offsets[s], a.key_offsets[s],
              a.key_offsets[s + 1] - a.key_offsets[s], h * a.d_head});
  });
}

template <class Work>
void for_blocks(const AttentionOperands& a, const Head& head, Work work) {
  for (Index first = 0; first < head.queries; first += kBlock) {
    const Index count = std::min(kBlock, head.queries - first);
    work(Block{first, count, a.causal ? std::min(first + count, head.keys) : head.keys});
  }
}

const real* q_at(const AttentionOperands& a, const Head& h, Index row) {
  return a.Q + (h.q_begin + row) * a.q_stride + h.column;
}
const real* k_at(const AttentionOperands& a, const Head& h) { return a.K + h.k_begin * a.k_stride + h.column; }
const real* v_at(const AttentionOperands& a, const Head& h) { return a.V + h.k_begin * a.v_stride + h.column; }

/// How many keys query `row` of the sequence sees.
Index seen_by(const AttentionOperands& a, const Block& block, Index row) {
  return a.causal ? std::min(row + 1, block.seen) : block.seen;
}

/// S [count, seen] = Q K^T / sqrt(d_head).
void scores(const AttentionOperands& a, const Head& h, const Block& block, real* S) {
  gemm_serial(block.count, block.seen, a.d_head, 1 / std::sqrt(static_cast<real>(a.d_head)),
              {q_at(a, h, block.first), a.q_stride}, {k_at(a, h), a.k_stride, true}, 0, S, block.seen);
}

/// Where the weights of a head begin in the array of all weights.
Index weights_begin(const AttentionOperands& a, const Head& h) {
  Index begin = h.head * h.queries * h.keys;
  for (std::size_t s = 0; s < h.sequence; ++s) {
    begin += a.heads * (a.query_offsets[s + 1] - a.query_offsets[s]) * (a.key_offsets[s + 1] - a.key_offsets[s]);
  }
  return begin;
}

/// The row number of dropout for a query.
std::uint64_t dropout_row(const AttentionOperands& a, const Head& h, Index row) {
  return static_cast<std::uint64_t>((h.q_begin + row) * a.heads + h.head);
}

}  // namespace

void attention(const AttentionOperands& a, real* O, real* log_sum, real* weights) {
  const Index width = a.heads * a.d_head;
  for_heads(a, [&](const Head& h) {
    real* const head_weights = weights != nullptr ? weights + weights_begin(a, h) : nullptr;
    const auto memory = scratch(std::min(kBlock, h.queries) * h.keys + h.keys);
    real* const S = memory.get();
    real* const factors = S + std::min(kBlock, h.queries) * h.keys;
    for_blocks(a, h, [&](const Block& block) {
      scores(a, h, block, S);
      for (Index r = 0; r < block.count; ++r) {
        real* row = S + r * block.seen;
        const Index seen = seen_by(a, block, block.first + r), query = h.q_begin + block.first + r;
        const real largest = simd::max(seen, row);
#pragma omp simd
        for (Index k = 0; k < seen; ++k) row[k] = simd::exp(row[k] - largest);
        const real sum = simd::sum(seen, row), inverse = seen == 0 ? 0 : 1 / sum;
#pragma omp simd
        for (Index k = 0; k < seen; ++k) row[k] *= inverse;
        std::fill(row + seen, row + block.seen, real{0});
        if (log_sum != nullptr) log_sum[query * a.heads + h.head] = seen == 0 ? 0 : largest + std::log(sum);
        if (head_weights != nullptr) {
          real* out = head_weights + (block.first + r) * h.keys;
          std::copy(row, row + block.seen, out);
          std::fill(out + block.seen, out + h.keys, real{0});
        }
        if (a.dropout.probability > 0) {
          dropout_factors(a.dropout, dropout_row(a, h, block.first + r), seen, factors);
#pragma omp simd
          for (Index k = 0; k < seen; ++k) row[k] *= factors[k];
        }
      }
      gemm_serial(block.count, a.d_head, block.seen, 1, {S, block.seen}, {v_at(a, h), a.v_stride}, 0,
                  O + (h.q_begin + block.first) * width + h.column, width);
    });
  });
}

void attention_backward(const AttentionOperands& a, const real* O, const real* log_sum, const real* dO, Dst dQ, Dst dK,
                        Dst dV) {
  const Index width = a.heads * a.d_head;
  const real scale = 1 / std::sqrt(static_cast<real>(a.d_head));
  for_heads(a, [&](const Head& h) {
    const Index most = std::min(kBlock, h.queries);
    const auto memory = scratch(2 * most * h.keys + h.keys);
    real* const P = memory.get();        // weights, then what multiplies V
    real* const dS = P + most * h.keys;  // gradient of the weights, then of the scores
    real* const factors = dS + most * h.keys;
    // A block adds to the gradients of all keys; the first block obeys the sinks' beta, or clears keys it does not see.
    const auto clear_unseen = [&](Dst dst, Index stride, Index seen) {
      for (Index k = seen; k < h.keys; ++k) {
        real* row = dst.data + (h.k_begin + k) * stride + h.column;
        for (Index d = 0; d < a.d_head; ++d) row[d] = dst.beta == 0 ? 0 : dst.beta * row[d];
      }
    };
    if (h.queries == 0) {
      if (dK) clear_unseen(dK, a.k_stride, 0);
      if (dV) clear_unseen(dV, a.v_stride, 0);
    }
    for_blocks(a, h, [&](const Block& block) {
      const Index row_at = (h.q_begin + block.first) * width + h.column;
      scores(a, h, block, P);
      gemm_serial(block.count, block.seen, a.d_head, 1, {dO + row_at, width}, {v_at(a, h), a.v_stride, true}, 0, dS,
                  block.seen);
      for (Index r = 0; r < block.count; ++r) {
        real* p = P + r * block.seen;
        real* ds = dS + r * block.seen;
        const Index seen = seen_by(a, block, block.first + r), query = h.q_begin + block.first + r;
        const real shift = log_sum[query * a.heads + h.head];
        // sum_k P dP = O . dO, also with dropout (Dao et al. 2022, appendix B.4)
        const real mean = simd::dot(a.d_head, O + row_at + r * width, dO + row_at + r * width);
        if (a.dropout.probability > 0) {
          dropout_factors(a.dropout, dropout_row(a, h, block.first + r), seen, factors);
#pragma omp simd
          for (Index k = 0; k < seen; ++k) {
            const real weight = simd::exp(p[k] - shift);
            ds[k] = weight * (ds[k] * factors[k] - mean) * scale;
            p[k] = weight * factors[k];
          }
        } else {
#pragma omp simd
          for (Index k = 0; k < seen; ++k) {
            p[k] = simd::exp(p[k] - shift);
            ds[k] = p[k] * (ds[k] - mean) * scale;
          }
        }
        std::fill(p + seen, p + block.seen, real{0});
        std::fill(ds + seen, ds + block.seen, real{0});
      }
      const bool first = block.first == 0;
      if (dQ) {
        gemm_serial(block.count, a.d_head, block.seen, 1, {dS, block.seen}, {k_at(a, h), a.k_stride}, dQ.beta,
                    dQ.data + (h.q_begin + block.first) * a.q_stride + h.column, a.q_stride);
      }
      if (dK) {
        if (first) clear_unseen(dK, a.k_stride, block.seen);
        gemm_serial(block.seen, a.d_head, block.count, 1, {dS, block.seen, true}, {q_at(a, h, block.first), a.q_stride},
                    first ? dK.beta : 1, dK.data + h.k_begin * a.k_stride + h.column, a.k_stride);
      }
      if (dV) {
        if (first) clear_unseen(dV, a.v_stride, block.seen);
        gemm_serial(block.seen, a.d_head, block.count, 1, {P, block.seen, true}, {dO + row_at, width},
                    first ? dV.beta : 1, dV.data + h.k_begin * a.v_stride + h.column, a.v_stride);
      }
    });
  });
}

}  // namespace weft

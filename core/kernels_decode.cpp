// Attention while decoding: one query against a past that is reached through ancestors, so that beam search reorders
// hypotheses without moving keys and values.
#include <cmath>

#include "weft/core/kernels.h"
#include "weft/core/memory.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {

void cached_attention(Index rows, const CachedOperands& a, real* O) {
  const auto steps = static_cast<Index>(a.past.size());
  const Index D = a.heads * a.d_head;
  const real scale = 1 / std::sqrt(static_cast<real>(a.d_head));
  parallel_for(rows, 4, [&](Index begin, Index end) {
    auto* weights = static_cast<real*>(pool_allocate(static_cast<std::size_t>(steps) * sizeof(real)));
    for (Index r = begin; r < end; ++r) {
      const Index* ancestors = a.ancestors.data() + r * steps;
      for (Index h = 0; h < a.heads; ++h) {
        const real* q = a.Q + r * a.q_stride + h * a.d_head;
        const auto key = [&](Index t) {
          return a.past[static_cast<std::size_t>(t)] + ancestors[t] * 2 * D + h * a.d_head;
        };
        for (Index t = 0; t < steps; ++t) weights[t] = scale * simd::dot(a.d_head, q, key(t));
        const real largest = simd::max(steps, weights);
#pragma omp simd
        for (Index t = 0; t < steps; ++t) weights[t] = simd::exp(weights[t] - largest);
        const real inverse = 1 / simd::sum(steps, weights);
        real* out = O + r * D + h * a.d_head;
        for (Index d = 0; d < a.d_head; ++d) out[d] = 0;
        for (Index t = 0; t < steps; ++t) {
          const real* value = key(t) + D;
          const real weight = weights[t] * inverse;
#pragma omp simd
          for (Index d = 0; d < a.d_head; ++d) out[d] += weight * value[d];
        }
      }
    }
    pool_free(weights);
  });
}

}  // namespace weft

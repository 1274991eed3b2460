// The mean of several models' probabilities, in logarithms throughout, so that the most improbable tokens keep an order.
#include <algorithm>
#include <array>
#include <cmath>

#include "weft/core/kernels.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {

void log_mean_softmax(Index T, Index V, std::span<const real* const> x, std::span<const real> log_sums, real* out) {
  constexpr Index kBlock = 64;
  const real log_models = std::log(static_cast<real>(x.size()));
  parallel_for(T, std::max<Index>(1, 4096 / std::max<Index>(V, 1)), [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      for (Index block = 0; block < V; block += kBlock) {
        const Index width = std::min(kBlock, V - block);
        real* const largest = out + t * V + block;
        std::array<real, kBlock> sums{};
        const auto each = [&](auto body) {
          for (std::size_t m = 0; m < x.size(); ++m) {
            body(x[m] + t * V + block, log_sums[m * static_cast<std::size_t>(T) + static_cast<std::size_t>(t)], m == 0);
          }
        };
        each([&](const real* logits, real log_sum, bool first) {
          for (Index i = 0; i < width; ++i) {
            const real one = logits[i] - log_sum;
            largest[i] = first || one > largest[i] ? one : largest[i];
          }
        });
        each([&](const real* logits, real log_sum, bool) {
          real* const sum = sums.data();
#pragma omp simd
          for (Index i = 0; i < width; ++i) sum[i] += simd::exp(logits[i] - log_sum - largest[i]);
        });
        for (Index i = 0; i < width; ++i) largest[i] += std::log(sums[static_cast<std::size_t>(i)]) - log_models;
      }
    }
  });
}

}  // namespace weft

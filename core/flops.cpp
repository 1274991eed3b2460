#include "weft/core/flops.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

std::atomic<Index> total{0};

// Enough sums side by side to hide the latency of a multiply-add, few enough to stay in registers.
#if defined(__AVX512F__)
constexpr int kSums = 12;
#else
constexpr int kSums = 5;
#endif

/// Does `rounds` multiply-adds on each sum.
real multiply_add(Index rounds) {
  simd::Vec sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = simd::Vec{} + static_cast<real>(i);
  const simd::Vec factor = simd::Vec{} + static_cast<real>(0.999999), term = simd::Vec{} + static_cast<real>(1e-6);
  for (Index r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
  }
  simd::Vec all{};
  for (const simd::Vec& sum : sums) all += sum;
  return simd::lane_sum(all);
}

}  // namespace

Index counted_flops() { return total.load(std::memory_order_relaxed); }

void count_flops(Index flops) { total.fetch_add(flops, std::memory_order_relaxed); }

double measure_peak_flops(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr Index kRounds = 100'000, kTiles = 8;
  const Index tiles = kTiles * threads();
  std::atomic<real> sink{0};  // so that nothing is left out
  double best = 0;
  const auto began = Clock::now();
  const auto since = [](Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); };
  do {
    const auto start = Clock::now();
    parallel_for(tiles, 1, [&](Index, Index) { sink = multiply_add(kRounds); });
    best = std::max(best, static_cast<double>(tiles * kRounds * kSums * simd::kLanes * 2) / since(start));
  } while (since(began) < seconds);
  return best;
}

}  // namespace weft

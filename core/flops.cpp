#include "weft/core/flops.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "weft/core/threads.h"

namespace weft {
namespace {

std::atomic<Index> total{0};

// Vectors as long as the CPU's registers, and enough sums side by side to hide the latency of a multiply-add, but few enough
// to stay in registers.
#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
using Lanes = real __attribute__((vector_size(kBytes)));
constexpr int kSums = 12;
constexpr Index kWidth = kBytes / static_cast<Index>(sizeof(real));

/// Does `rounds` multiply-adds on each sum.
real multiply_add(Index rounds) {
  Lanes sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = Lanes{} + static_cast<real>(i);
  const Lanes factor = Lanes{} + static_cast<real>(0.999999), term = Lanes{} + static_cast<real>(1e-6);
  for (Index r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
  }
  Lanes all{};
  for (const Lanes& sum : sums) all += sum;
  real sum_of_all = 0;
  for (Index i = 0; i < kWidth; ++i) sum_of_all += all[i];
  return sum_of_all;
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
    best = std::max(best, static_cast<double>(tiles * kRounds * kSums * kWidth * 2) / since(start));
  } while (since(began) < seconds);
  return best;
}

}  // namespace weft

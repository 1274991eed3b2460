// Counting of the arithmetic of matrix products, attention's included, for benchmarks; and how fast this machine could do
// it at best.
#pragma once

#include "weft/core/types.h"

namespace weft {

/// The floating-point operations of all products so far in this process: 2 M N K for each.
Index counted_flops();

/// Adds to them. For kernels.
void count_flops(Index flops);

/// The fused multiply-adds that this machine does at best, in operations a second (two each), with threads() threads:
/// measured for about `seconds`, from registers alone.
double measure_peak_flops(double seconds);

}  // namespace weft

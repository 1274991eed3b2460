#include "weft/optim/moving_average.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/core/error.h"
#include "weft/core/threads.h"

namespace weft {

MovingAverage::MovingAverage(double decay, std::span<const real> start)
    : decay_(decay), average_(Tensor::zeros({static_cast<Index>(start.size())})) {
  if (!(decay > 0 && decay < 1)) {
    throw ConfigError(fmt::format("training.ema_decay is {}; it must be above 0 and below 1", decay));
  }
  std::copy(start.begin(), start.end(), average_.values().begin());
}

void MovingAverage::update(std::span<const real> values, Index number) {
  if (values.size() != average_.values().size()) {
    throw ShapeError(
        fmt::format("[moving average] got {} values; it was made for {}", values.size(), average_.values().size()));
  }
  const auto n = static_cast<double>(number);
  const auto share = static_cast<real>(1.0 - std::min(decay_, (1.0 + n) / (10.0 + n)));
  constexpr Index kTile = 1 << 14;
  parallel_for(static_cast<Index>(values.size()), kTile, [&](Index begin, Index end) {
    const real* x = values.data();
    real* average = average_.data();
#pragma omp simd
    for (Index i = begin; i < end; ++i) average[i] += share * (x[i] - average[i]);
  });
}

}  // namespace weft

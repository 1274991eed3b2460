// An exponential moving average of all parameters, which changes less from
// update to update than they do. Each element depends on that element's history
// alone, so the bits are the same for any number of threads.
#pragma once

#include <span>

#include "weft/core/tensor.h"

namespace weft {

/// The average a of values x: after update n, counted from 1, a = d a + (1 - d)
/// x with d = min(decay, (1 + n) / (10 + n)), which lets it forget the
/// beginning soon. Polyak and Juditsky 1992, "Acceleration of stochastic
/// approximation by averaging", in the exponential form.
class MovingAverage {
 public:
  /// Begins at these values. Throws ConfigError unless 0 < decay < 1.
  MovingAverage(double decay, std::span<const real> start);

  /// Takes in the values after update `number`. Allocates nothing. Throws
  /// ShapeError if there are not as many as before.
  void update(std::span<const real> values, Index number);

  /// The average, which a checkpoint must hold.
  std::span<real> values() { return average_.values(); }
  std::span<const real> values() const { return average_.values(); }

 private:
  double decay_;
  Tensor average_;
};

}  // namespace weft

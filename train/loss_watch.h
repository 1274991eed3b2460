// A watch on the losses of a training run for one that explodes: finite, but far from what it was. What it says depends on
// the losses so far alone.
#pragma once

#include <limits>

#include "weft/core/types.h"

namespace weft {

/// Watches the losses of updates for one that explodes: whose smoothed value, m += 0.1 (loss - m) from the first loss on,
/// is over 1.5 times its least value so far and 0.5 nats over it, for 20 updates in a row.
struct LossWatch {
  double mean = std::numeric_limits<double>::quiet_NaN();   ///< NaN before the first loss
  double least = std::numeric_limits<double>::quiet_NaN();  ///< that the mean ever was
  Index above = 0;                                          ///< updates in a row with the mean so far over the least

  /// Takes in a finite loss, and returns whether it has just become clear that it explodes.
  bool take(double loss);
};

}  // namespace weft

#include "weft/train/loss_watch.h"

#include <cmath>

namespace weft {
namespace {

constexpr double kLossWeight = 0.1, kExplosionFactor = 1.5, kExplosionLeast = 0.5;
constexpr Index kExplosionUpdates = 20;

}  // namespace

bool LossWatch::take(double loss) {
  mean = std::isnan(mean) ? loss : mean + kLossWeight * (loss - mean);
  if (std::isnan(least) || mean < least) least = mean;
  const bool far = mean > kExplosionFactor * least && mean > least + kExplosionLeast;
  above = far ? above + 1 : 0;
  return above == kExplosionUpdates;
}

}  // namespace weft

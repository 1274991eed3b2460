#include "weft/train/layer_timing.h"

#include <algorithm>
#include <chrono>

#include "weft/nn/layer_trial.h"
#include "weft/train/median.h"

namespace weft {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

LayerTiming time_layer(const Registry& registry, std::string_view slot, std::string_view name,
                       const LayerOptions& options) {
  constexpr double kSeconds = 0.15;
  constexpr std::size_t kLeastRounds = 5;
  LayerTrial trial(registry, slot, name, options);
  const std::vector<Index> lengths(32, std::min<Index>(32, options.max_length));
  const LayerBatch batch = random_batch(options.d_model, lengths, lengths, 1);
  const Tensor gradient = random_rows(batch.x.shape(), 2);
  std::vector<double> forward, backward;
  for (const double began = now(); forward.size() < kLeastRounds || now() < began + kSeconds;) {
    const LayerPass pass = trial.pass(batch, gradient, true, {1, forward.size()});
    forward.push_back(pass.forward_seconds);
    backward.push_back(pass.backward_seconds);
  }
  const double scale = 1e9 / static_cast<double>(batch.x.rows());
  return {scale * median(forward), scale * median(backward)};
}

}  // namespace weft

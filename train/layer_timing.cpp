#include "weft/train/layer_timing.h"

#include <algorithm>
#include <memory>

#include "weft/core/clock.h"
#include "weft/nn/layer_trial.h"

namespace weft {
std::vector<LayerTiming> time_layers(const Registry& registry, std::string_view slot,
                                     const std::vector<std::string>& names, const LayerOptions& options) {
  constexpr double kSeconds = 0.3;
  constexpr std::uint64_t kLeastRounds = 5;
  std::vector<std::unique_ptr<LayerTrial>> trials;
  for (const std::string& name : names) trials.push_back(std::make_unique<LayerTrial>(registry, slot, name, options));
  const std::vector<Index> lengths(32, std::min<Index>(32, options.max_length));
  const LayerBatch batch = random_batch(options.d_model, lengths, lengths, 1);
  const Tensor gradient = random_rows(batch.x.shape(), 2);
  const double scale = 1e9 / static_cast<double>(batch.x.rows());
  std::vector<LayerTiming> timings(names.size(), {1e300, 1e300});
  const double began = now();
  for (std::uint64_t round = 0; round < kLeastRounds || now() < began + kSeconds; ++round) {
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const LayerPass pass = trials[i]->pass(batch, gradient, true, {1, round});
      timings[i].forward = std::min(timings[i].forward, scale * pass.forward_seconds);
      timings[i].backward = std::min(timings[i].backward, scale * pass.backward_seconds);
    }
  }
  return timings;
}

}  // namespace weft

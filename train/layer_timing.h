// How fast layers are, alone, in training: nanoseconds for each row of a batch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/nn/registry.h"

namespace weft {

/// The fastest of several rounds, for each row.
struct LayerTiming {
  double forward = 0;   ///< nanoseconds
  double backward = 0;  ///< nanoseconds, for the gradients of inputs and parameters
};

/// Times layers of a slot, in turns so that a busy machine is so to all, on a batch of 32 sentences of 32 rows (or
/// max_length, if that is less), with as many threads as are set. Takes some tenths of a second. Throws what a layer throws.
std::vector<LayerTiming> time_layers(const Registry& registry, std::string_view slot,
                                     const std::vector<std::string>& names, const LayerOptions& options);

}  // namespace weft

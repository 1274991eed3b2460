// How fast a layer is, alone, in training: nanoseconds for each row of a batch.
#pragma once

#include <string_view>

#include "weft/nn/registry.h"

namespace weft {

/// Medians of several rounds, for each row.
struct LayerTiming {
  double forward = 0;   ///< nanoseconds
  double backward = 0;  ///< nanoseconds, for the gradients of inputs and parameters
};

/// Times the layer on a batch of 32 sentences of 32 rows (or max_length, if that is less), with as many threads as are set.
/// Takes some tenths of a second. Throws what the layer throws.
LayerTiming time_layer(const Registry& registry, std::string_view slot, std::string_view name,
                       const LayerOptions& options);

}  // namespace weft

// The number types of the whole library.
#pragma once

#include <cstdint>

namespace weft {

/// Element type of every tensor: float, or double in a build with WEFT_DOUBLE (gradient checks need it).
#ifdef WEFT_DOUBLE
using real = double;
#else
using real = float;
#endif

/// Sizes, positions and counts of elements.
using Index = std::int64_t;

/// A token of a vocabulary.
using TokenId = std::int32_t;

}  // namespace weft

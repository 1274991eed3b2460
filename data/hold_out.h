// Pairs of a training text set aside for validation and test, so that no sentence is on both sides of the cut. Which pairs
// they are depends on the pairs and the seed alone, not on their order in the files.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/core/types.h"
#include "weft/data/parallel_text.h"

namespace weft {

/// The sides of a pair as hashes of fold_text; both are 0 for a pair with a blank side.
struct FoldedPair {
  std::uint64_t source = 0, target = 0;

  bool blank() const { return source == 0 && target == 0; }
};

/// Appends the pairs of a block.
void fold_pairs(const ParallelText& block, std::vector<FoldedPair>& pairs);

/// The part of a text that a pair belongs to.
enum class Part : std::uint8_t { kTrain, kValid, kTest };

/// Chooses `valid` and `test` pairs to hold out, and returns the part of each pair. Pairs whose folded sources or targets
/// are equal, and pairs linked by others so, stay together; pairs with a blank side stay in the training text. Throws
/// DataError if no choice of whole groups gives the numbers, or if no pair would be left to train on.
std::vector<Part> hold_out(const std::vector<FoldedPair>& pairs, Index valid, Index test, std::uint64_t seed);

}  // namespace weft

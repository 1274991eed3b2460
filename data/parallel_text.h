// Sentence pairs as plain text.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// Sentences and their translations: source[i] pairs with target[i].
struct ParallelText {
  std::vector<std::string> source, target;
};

}  // namespace weft

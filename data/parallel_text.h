// Text in two languages, line by line: line i of the target translates line i of the source.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// Sentence pairs; both sides have equally many lines, without their line ends.
struct ParallelText {
  std::vector<std::string> source, target;

  bool operator==(const ParallelText&) const = default;
};

}  // namespace weft

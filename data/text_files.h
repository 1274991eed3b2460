// The names of the files that sentence pairs stand in.
#pragma once

#include <string>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// Where sentence pairs stand: in two files, line n of which translate each other, or in two columns of one file whose
/// columns are parted by TAB. Each file may be gzipped (see open_text).
struct TextFiles {
  std::string source, target;
  std::string tsv;                             ///< instead of the two
  Index source_column = 1, target_column = 2;  ///< of `tsv`, from 1

  bool operator==(const TextFiles&) const = default;

  /// The files: two, or one.
  std::vector<std::string> names() const {
    return tsv.empty() ? std::vector<std::string>{source, target} : std::vector<std::string>{tsv};
  }
};

}  // namespace weft

// The rows of a packed batch: sentences laid end to end, without padding.
#pragma once

#include <vector>

#include "weft/core/types.h"

namespace weft {

/// Row ranges of the sequences in a packed batch: sequence i owns rows [begin(i), end(i)). A sequence may be empty.
/// (What FlashAttention calls cu_seqlens.)
class Ragged {
 public:
  /// No sequences.
  Ragged() : offsets_{0} {}

  /// Sequences of the given lengths, in order.
  static Ragged of_lengths(const std::vector<Index>& lengths) {
    Ragged ragged;
    for (const Index length : lengths) ragged.append(length);
    return ragged;
  }

  /// Adds a sequence of `length` rows at the end.
  void append(Index length) { offsets_.push_back(offsets_.back() + length); }

  /// Gives back the room for further sequences.
  void shrink() { offsets_.shrink_to_fit(); }

  Index sequences() const { return static_cast<Index>(offsets_.size()) - 1; }
  Index rows() const { return offsets_.back(); }
  Index begin(Index sequence) const { return offsets_[static_cast<std::size_t>(sequence)]; }
  Index end(Index sequence) const { return offsets_[static_cast<std::size_t>(sequence) + 1]; }
  Index length(Index sequence) const { return end(sequence) - begin(sequence); }

  /// sequences() + 1 row numbers: the begin of each sequence, then rows().
  const std::vector<Index>& offsets() const { return offsets_; }

  bool operator==(const Ragged&) const = default;

 private:
  std::vector<Index> offsets_;
};

}  // namespace weft

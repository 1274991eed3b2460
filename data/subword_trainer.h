// Training of subword models by SentencePiece. The same text and options give the same bytes, whatever the number of
// threads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// What a subword model shall be.
struct SubwordOptions {
  std::string kind = "unigram";     ///< or "bpe"
  Index size = 0;                   ///< of the vocabulary, specials included; less if the text has not as many pieces
  bool byte_fallback = false;       ///< Whether unknown characters become their bytes, which are 256 of the pieces.
  double character_coverage = 1.0;  ///< The share of the text's characters, the most frequent first, that are pieces.
  bool lowercase = false;           ///< Whether text is put into lower case first.
};

/// Trains a model on lines and returns the bytes of its .model file. Its pieces 0, 1 and 2 are the specials of Vocabulary,
/// and it normalises nothing. Lines longer than 4000 bytes are cut. Throws ConfigError if the size has no room for the
/// characters, DataError if the lines are blank.
std::string train_subwords(std::span<const std::span<const std::string>> texts, const SubwordOptions& options);

}  // namespace weft

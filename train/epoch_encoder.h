// The training text with subwords drawn anew in each epoch.
#pragma once

#include <utility>
#include <vector>

#include "weft/data/corpus.h"
#include "weft/data/parallel_text.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Encodes the pairs `lines` of a text anew for each epoch, with subwords drawn at random. What comes of a pair depends on
/// its text, the seed, the epoch and its line alone. A side that gets more than `longest` tokens has those of encode_text.
class EpochEncoder {
 public:
  /// `model` and `text` must outlive it. Throws DataError unless `lines` rise and are all in the text.
  EpochEncoder(const TranslationModel& model, const ParallelText& text, std::vector<Index> lines, Index longest);

  Corpus operator()(Index epoch) const;

 private:
  const TranslationModel* model_;
  const ParallelText* text_;
  std::vector<Index> lines_;
  Index longest_;
};

}  // namespace weft

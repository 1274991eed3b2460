// Pairs of a training text with subwords drawn as for an epoch, to say beforehand how much there will be of them.
#pragma once

#include "weft/data/corpus.h"
#include "weft/train/translation_model.h"

namespace weft {

/// What a sample of a training text is.
struct DrawnSample {
  Corpus drawn;            ///< its pairs, with subwords drawn at random
  double share = 0;        ///< of the pairs of the text, 1 at most
  Index plain_tokens = 0;  ///< what they have as the text has them, both sides
  Index line_bytes = 0;    ///< of their lines, both sides
};

/// Draws a sample with data.subword_sampling: pairs spread evenly over the text, at least 512 of them, and so many that
/// they have at least `tokens` tokens; of a smaller text all. Lines are made of the tokens of the text. As in an epoch,
/// a side that would be too long stays as it is.
DrawnSample draw_sample(const TranslationModel& model, const Corpus& train, double tokens);

}  // namespace weft

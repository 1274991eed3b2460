// From lines of text to lines of text. The translation of a line does not depend on the lines around it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/train/attention_picture.h"
#include "weft/train/search.h"
#include "weft/train/translation_model.h"

namespace weft {

/// One of the translations of a line.
struct Translation {
  std::string text;
  double score = 0;  ///< see Hypothesis
};

/// What came of a line.
struct TranslatedLine {
  /// Best first. A blank line has one empty translation, made without the model.
  std::vector<Translation> translations;
  Index cut_tokens = 0;  ///< source tokens left out because the model cannot hold more
};

/// The search options of a config.
SearchOptions search_options(const DecodingConfig& config);

/// Translates lines of valid UTF-8, in batches of at most `batch_tokens` source tokens times hypotheses.
std::vector<TranslatedLine> translate(const TranslationModel& model, std::span<const std::string> lines,
                                      const SearchOptions& options, Index batch_tokens);

/// The cross-attention of the last decoder layer that has any, when the decoder reads `translation` after `source`.
/// Throws DataError if either has no tokens, ConfigError if no layer of the model shows its attention.
AttentionMap attention_map(const TranslationModel& model, std::string_view source, std::string_view translation);

}  // namespace weft

// From lines of text to lines of text. The translation of a line does not depend on the lines around it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/train/alignment.h"
#include "weft/train/attention_picture.h"
#include "weft/train/line_progress.h"
#include "weft/train/model_ensemble.h"
#include "weft/train/sampling.h"
#include "weft/train/search.h"
#include "weft/train/translation_model.h"

namespace weft {

/// One of the translations of a line.
struct Translation {
  std::string text;
  double score = 0;                 ///< see Hypothesis
  std::vector<std::string> tokens;  ///< what `text` was joined from
  Alignment alignment;              ///< if asked for
};

/// What came of a line.
struct TranslatedLine {
  /// Best first and of different texts, so they may be fewer than asked for; samples are in the order of their numbers, and
  /// may be equal. A blank line has one empty translation, made without the model.
  std::vector<Translation> translations;
  std::vector<std::string> source;  ///< the tokens that were read
  Index cut_tokens = 0;             ///< source tokens left out because the model cannot hold more
};

/// How to translate.
struct TranslateOptions {
  SearchOptions search = {};                     ///< with allow_unknown, <unk> is replaced: see translate
  std::optional<SamplingOptions> sampling = {};  ///< draw search.n_best samples instead of searching
  Index first_line = 1;                          ///< the number of the first line, which samples depend on
  bool alignments = false;                       ///< whether translations get their alignment
  Index batch_tokens = 4096;                     ///< source tokens times hypotheses of a batch
  LineProgress* progress = nullptr;              ///< told of the lines as they are done
};

/// The search options of a config.
SearchOptions search_options(const DecodingConfig& config);

/// Translates lines of valid UTF-8 with one or several models. Where an <unk> was written, the source token that it looked
/// at most is put instead (see alignment.h). Throws NotANumberError if a model's output is none.
std::vector<TranslatedLine> translate(ModelSpan models, std::span<const std::string> lines,
                                      const TranslateOptions& options);

/// The same by search with a single model.
std::vector<TranslatedLine> translate(const TranslationModel& model, std::span<const std::string> lines,
                                      const SearchOptions& options, Index batch_tokens);

/// The cross-attention of the last decoder layer that has any, when the decoder reads `translation` after `source`.
/// Throws DataError if either has no tokens, ConfigError if no layer of the model shows its attention.
AttentionMap attention_map(const TranslationModel& model, std::string_view source, std::string_view translation);

}  // namespace weft

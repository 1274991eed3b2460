// How good a model is on a parallel text: the loss under teacher forcing, and scores of its translations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/data/batch.h"
#include "weft/data/corpus.h"
#include "weft/train/line_progress.h"
#include "weft/train/metrics.h"
#include "weft/train/search.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Teacher-forced results over all target tokens, </s> included, without label smoothing and dropout.
struct LossResult {
  double loss = 0;            ///< cross-entropy per token, in nats
  double perplexity = 0;      ///< e^loss
  double token_accuracy = 0;  ///< share of tokens that had the highest probability
  Index tokens = 0;
};

/// Translations, and line by line what their scores are made of.
struct TranslationResult {
  std::vector<std::string> translations;
  std::vector<bool> exact;         ///< whether a line equals one of its references byte for byte
  std::vector<LineCounts> counts;  ///< of each metric
  Index cut_lines = 0;             ///< of more tokens than the model holds; translated as far as it goes
};

/// Runs the model over one batch without recording, and adds to the statistics of its target tokens.
void batch_loss(const TranslationModel& model, const Batch& batch, TokenStatistics& statistics);

/// Runs the model over a corpus without recording, in batches of `batch_tokens`.
LossResult evaluate_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens);

/// How many lines evaluate_translations translates at a time: their tokens take far more memory than is kept of them.
inline constexpr std::size_t kLinesAtOnce = 1024;

/// Translates lines and compares them with their references; references[r][i] is the r-th of source[i]. `progress`, if
/// there is one, is told of the lines as they are translated.
TranslationResult evaluate_translations(const TranslationModel& model, std::span<const std::string> source,
                                        std::span<const std::vector<std::string>> references, const Metrics& metrics,
                                        const SearchOptions& options, Index batch_tokens,
                                        LineProgress* progress = nullptr);

/// What evaluate_translations takes from the heap, tensors aside, in bytes.
struct TranslationBytes {
  Index kept = 0;   ///< for its result, in proportion to the lines
  Index block = 0;  ///< beside it, for the kLinesAtOnce lines that take most
  Index count = 0;  ///< beside it, for the longest lines that threads() threads may score at once

  Index bytes() const { return kept + block + count; }
};

/// What it takes, about, for the first `pairs` of a corpus, one line each, if the model ends no sentence by itself. With
/// `references`, one for each line that is scored, their lengths are those of the longest.
TranslationBytes translation_bytes(const TranslationModel& model, const Corpus& corpus, Index pairs,
                                   const Metrics& metrics, const SearchOptions& options,
                                   std::span<const std::string> references = {});

/// Says for each hypothesis whether it equals one of its references byte for byte. Throws DataError for unequal
/// counts.
std::vector<bool> exact_matches(std::span<const std::string> hypotheses,
                                std::span<const std::vector<std::string>> references);

/// The share of lines that are true; 0 for no lines. With `lines`, of these alone.
double share_of(const std::vector<bool>& exact);
double share_of(const std::vector<bool>& exact, std::span<const std::size_t> lines);

/// The lines whose sources are about equally long.
struct LengthBucket {
  std::string name;  ///< "11-20", in source tokens
  std::vector<std::size_t> lines;
};

/// Puts lines into buckets by their source lengths in tokens: 0, 1-5, 6-10, 11-20, 21-30, 31-50, 51+; buckets
/// without lines are left out.
std::vector<LengthBucket> buckets_by_length(std::span<const Index> lengths);

}  // namespace weft

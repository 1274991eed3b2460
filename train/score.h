// How probable given translations are: forced decoding of sentence pairs by one or several models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/data/batch.h"
#include "weft/data/parallel_text.h"
#include "weft/train/alignment.h"
#include "weft/train/model_ensemble.h"

namespace weft {

/// What came of a pair.
struct ScoredPair {
  std::string skipped;                      ///< why the pair has no score; empty if it has one
  std::vector<std::string> source, target;  ///< tokens; none if it was skipped
  std::vector<double> log_probabilities;    ///< natural logarithms, of each target token and then of </s>
  double log_probability = 0;               ///< their sum
  Index unknown = 0;                        ///< target tokens that the vocabulary lacks; scored as <unk>
  Alignment alignment;                      ///< if asked for
};

/// How to score.
struct ScoreOptions {
  Index batch_tokens = 4096;  ///< source and target tokens of a batch
  bool alignments = false;
};

/// The log-probability of each row of a batch's target after what the decoder read; of several models that of the mean of
/// their probabilities. Throws NotANumberError.
std::vector<double> target_log_probabilities(TransformerSpan models, const Batch& batch);

/// Scores each pair of lines of valid UTF-8, in their order. A pair with a blank side, or with a side of more tokens than
/// the models hold, is skipped: a part of it would have another probability. Throws NotANumberError.
std::vector<ScoredPair> score(ModelSpan models, const ParallelText& text, const ScoreOptions& options = {});

/// Sums over the pairs that have a score.
struct ScoreSummary {
  Index pairs = 0, skipped = 0;
  Index tokens = 0;  ///< target tokens and </s>
  double log_probability = 0;

  void add(const ScoredPair& pair);
  /// e^(-log_probability / tokens); NaN without tokens.
  double perplexity() const;
};

}  // namespace weft

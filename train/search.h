// Greedy and beam search over a Transformer. The result for a sentence does not depend on which others are searched with
// it.
#pragma once

#include <span>
#include <vector>

#include "weft/core/ragged.h"
#include "weft/nn/transformer.h"

namespace weft {

/// How wide and how long a search is, and what it prefers.
struct SearchOptions {
  Index beam = 4;               ///< hypotheses kept for each sentence; 1 is greedy search
  Index n_best = 1;             ///< results wanted for each sentence, at most `beam`
  double length_penalty = 0.6;  ///< alpha; 0 compares log-probabilities as they are
  double max_length_ratio = 2;  ///< a result has at most this times the source's tokens, plus
  Index max_length_extra = 10;  ///< this many tokens, and never more than the model can hold
  Index min_length = 0;         ///< a result has at least so many tokens, unless its limit is lower
  Index max_length = 0;         ///< if not 0, the limit instead of the source's tokens times ratio plus extra
};

/// A finished translation.
struct Hypothesis {
  std::vector<TokenId> tokens;  ///< without <s> and </s>
  double log_probability = 0;   ///< natural logarithm, of tokens and </s> together
  double score = 0;             ///< log_probability / length_penalty(tokens and </s>)
};

/// ((5 + length) / 6)^alpha. Wu et al. 2016, "Google's neural machine translation system", equation 14.
double length_penalty(Index length, double alpha);

/// The best finished hypotheses of each sentence, best first; ties go to the smaller token ids. `source` holds the
/// sentences' tokens, each with its </s>. In each step a sentence keeps its `beam` best continuations; those that end
/// with </s> are finished. The search for a sentence ends when no continuation of what is kept can still be better than
/// the worst of its n_best finished hypotheses: log-probabilities only fall, and no length penalty exceeds that of the
/// longest allowed result. At that length </s> is the only continuation, and below min_length it is none. <unk> and <s> are
/// never written.
std::vector<std::vector<Hypothesis>> search(const Transformer& model, std::span<const TokenId> source,
                                            const Ragged& source_rows, const SearchOptions& options);

}  // namespace weft

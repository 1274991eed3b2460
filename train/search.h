// Greedy and beam search over one or several Transformers. The result for a sentence does not depend on which others are
// searched with it.
#pragma once

#include <span>
#include <vector>

#include "weft/core/ragged.h"
#include "weft/nn/transformer.h"
#include "weft/train/ensemble_decoder.h"

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
  Index no_repeat_ngram = 0;    ///< no result holds the same so many tokens in a row twice; 0 for no such rule
  bool allow_unknown = false;   ///< whether <unk> may be written; without it the next best token is
};

/// A finished translation.
struct Hypothesis {
  std::vector<TokenId> tokens;  ///< without <s> and </s>
  double log_probability = 0;   ///< natural logarithm, of tokens and </s> together; of the mean of several models
  double score = 0;             ///< log_probability / length_penalty(tokens and </s>)
};

/// ((5 + length) / 6)^alpha. Wu et al. 2016, "Google's neural machine translation system", equation 14.
double length_penalty(Index length, double alpha);

/// The best finished hypotheses of each sentence, best first; ties go to the smaller token ids. `source` holds the
/// sentences' tokens, each with its </s>. In each step a sentence keeps its `beam` best continuations; those that end
/// with </s> are finished. At the longest length </s> is the only continuation; below min_length it is none, unless
/// no_repeat_ngram forbids all others. <s> is never written. Throws NotANumberError if a model's output is none.
///
/// The search for a sentence ends when nothing that it keeps can still be better than the worst of its n_best finished
/// hypotheses, and so misses none. For let a live hypothesis have log-probability L and become a finished one of length n
/// (</s> counted) with log-probability L' and score L' / lp(n). No step adds more than log 1 = 0, so L' <= L <= 0, and as
/// lp > 0 the score is at most L / lp(n). lp is monotone in n, rising for alpha >= 0 and falling for alpha < 0, so for L <= 0
/// this bound is largest at the longest or at the shortest length that can still come; it rises with L as well. Hence the
/// live hypothesis of the largest L gives, at one of these two lengths, a bound for all that can follow. (Sums and
/// quotients of doubles are rounded monotonously, and a step's logarithm that rounding put above 0 counts as 0.) So a beam
/// that drops no prefix finds the n_best of all sequences.
std::vector<std::vector<Hypothesis>> search(TransformerSpan models, std::span<const TokenId> source,
                                            const Ragged& source_rows, const SearchOptions& options);

/// The same with a single model.
std::vector<std::vector<Hypothesis>> search(const Transformer& model, std::span<const TokenId> source,
                                            const Ragged& source_rows, const SearchOptions& options);

}  // namespace weft

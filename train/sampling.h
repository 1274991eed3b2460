// Translations drawn at random from the model's distribution. A draw is a function of the sentence, the seed, the line's
// number and the sample's number: neither threads nor the sentences drawn beside it change it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/train/search.h"

namespace weft {

/// From which part of a distribution tokens are drawn.
struct SamplingOptions {
  double temperature = 1;  ///< logits are divided by it; above 0
  Index top_k = 0;         ///< only so many of the most probable tokens; 0 for all
  double top_p = 1;        ///< of these only the fewest most probable whose probabilities reach this share; above 0
  std::uint64_t seed = 1;
};

/// The token that `uniform`, from [0, 1), picks by the softmax of `logits` / temperature, cut by top_k and then by top_p;
/// tokens in `forbidden`, which rises, are left out before that. Of equally probable tokens the smaller count as more
/// probable. -1 if nothing is allowed or a number is none. Top-k: Fan et al. 2018, "Hierarchical neural story generation",
/// section 5.4; top-p: Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1.
TokenId sampled_token(std::span<const real> logits, std::span<const TokenId> forbidden, const SamplingOptions& options,
                      double uniform);

/// options.n_best samples of each sentence, in the order of their numbers, which may be equal. lines[i] is the number
/// of sentence i, by which its random numbers are addressed. Lengths, no_repeat_ngram and allow_unknown hold as in
/// search(); beam does not count. A hypothesis has the log-probability that the model gives it, whatever it was drawn
/// from. Throws NotANumberError if a model's output is none.
std::vector<std::vector<Hypothesis>> sample(TransformerSpan models, std::span<const TokenId> source,
                                            const Ragged& source_rows, std::span<const Index> lines,
                                            const SearchOptions& options, const SamplingOptions& sampling);

}  // namespace weft

// A Transformer and a batch of three sentences, for tests of modules.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/nn/transformer.h"

namespace weft {

/// The options of a model that is quick and has more than one of everything.
inline TransformerOptions small_options() {
  TransformerOptions options;
  options.source_vocabulary = options.target_vocabulary = 17;
  options.d_model = 24, options.heads = 3, options.d_feed_forward = 40;
  options.max_length = 16;
  options.dropout = 0;
  return options;
}

inline TransformerOptions pre_norm(TransformerOptions options) {
  options.norm_first = true;
  options.tied_embeddings = "all";
  options.activation = "gelu";
  return options;
}

/// `count` tokens from 3 on.
inline std::vector<TokenId> random_tokens(Random& random, Index count, Index vocabulary) {
  std::vector<TokenId> tokens;
  for (Index i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(3 + random.below(static_cast<std::uint64_t>(vocabulary - 3))));
  }
  return tokens;
}

/// Random sentences of given lengths.
struct SmallBatch {
  SmallBatch(const TransformerOptions& options, const std::vector<Index>& source_lengths,
             const std::vector<Index>& target_lengths, std::uint64_t seed = 5)
      : source_rows(Ragged::of_lengths(source_lengths)), target_rows(Ragged::of_lengths(target_lengths)) {
    Random random(seed);
    source = random_tokens(random, source_rows.rows(), options.source_vocabulary);
    decoder_input = random_tokens(random, target_rows.rows(), options.target_vocabulary);
    target = random_tokens(random, target_rows.rows(), options.target_vocabulary);
  }
  TransformerBatch batch() const { return {source, source_rows, decoder_input, target, target_rows}; }

  Ragged source_rows, target_rows;
  std::vector<TokenId> source, decoder_input, target;
};

/// Moves every parameter off its beginning, so that zero biases and unit norms cannot hide a mistake.
inline void perturb(ParameterSet& parameters, std::uint64_t seed = 9) {
  Random random(seed);
  for (const ParameterEntry& entry : parameters.entries()) {
    Tensor values = parameters.value(entry);
    for (real& value : values.values()) value += static_cast<real>(0.4 * random.uniform() - 0.2);
  }
}

/// The largest difference, as a share of the largest value.
inline double worst_error(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const double difference = std::abs(static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i]));
    worst = std::max(worst, std::isnan(difference) ? 1e300 : difference);
    largest = std::max(largest, std::abs(static_cast<double>(b.values()[i])));
  }
  return worst / largest;
}

}  // namespace weft

// Random Transformers of a few words, and what they give to whole sequences by teacher forcing: the truth that searches and
// samples are compared with.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/random.h"
#include "weft/data/vocabulary.h"
#include "weft/nn/registry.h"
#include "weft/nn/transformer.h"
#include "weft/train/search.h"

namespace weft {

using Tokens = std::vector<TokenId>;

/// A random model whose vocabularies hold the specials and `words` words. The weights are larger than those
/// that training begins with, so that its probabilities are far from equal.
struct Tiny {
  explicit Tiny(std::uint64_t seed, Index words = 3, Index max_length = 12, Registry layers = standard_layers(),
                const std::string& feed_forward = "default")
      : parameters(seed),
        registry(std::move(layers)),
        model(parameters, options(words, max_length, feed_forward), registry) {
    Tensor values = parameters.values();
    for (real& value : values.values()) value *= 2;
  }
  static TransformerOptions options(Index words, Index max_length, const std::string& feed_forward) {
    TransformerOptions o;
    o.source_vocabulary = o.target_vocabulary = 3 + words;
    o.d_model = 8;
    o.heads = 2;
    o.encoder_layers = o.decoder_layers = 1;
    o.d_feed_forward = 12;
    o.max_length = max_length;
    o.feed_forward = feed_forward;
    return o;
  }

  ParameterSet parameters;
  Registry registry;
  Transformer model;
};

/// Random source sentences with these numbers of words, each with its </s>.
inline std::vector<Tokens> sources(const std::vector<std::size_t>& lengths, std::uint64_t seed, Index words = 3) {
  Random random(seed);
  std::vector<Tokens> sentences;
  for (const std::size_t length : lengths) {
    Tokens sentence;
    while (sentence.size() < length) {
      sentence.push_back(static_cast<TokenId>(3 + random.below(static_cast<std::uint64_t>(words))));
    }
    sentence.push_back(kEnd);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

/// Sentences laid end to end.
struct Packed {
  explicit Packed(const std::vector<Tokens>& sentences) {
    for (const Tokens& sentence : sentences) {
      tokens.insert(tokens.end(), sentence.begin(), sentence.end());
      rows.append(static_cast<Index>(sentence.size()));
    }
  }
  Tokens tokens;
  Ragged rows;
};

/// log p(next token | source, <s> and what was written), for each position of a target, by teacher forcing.
inline std::vector<std::vector<double>> forced(const Tiny& tiny, const Tokens& source, const Tokens& written) {
  Tokens input{kBegin};
  input.insert(input.end(), written.begin(), written.end());
  const Ragged source_rows = Ragged::of_lengths({static_cast<Index>(source.size())});
  const Ragged rows = Ragged::of_lengths({static_cast<Index>(input.size())});
  const Var memory = tiny.model.encode(Context{}, source, source_rows);
  const Tensor logits =
      tiny.model.logits(Context{}, tiny.model.decode(Context{}, input, rows, memory, source_rows)).value();
  std::vector<std::vector<double>> result;
  for (Index row = 0; row < logits.rows(); ++row) {
    std::vector<double> scores(logits.data() + row * logits.cols(), logits.data() + (row + 1) * logits.cols());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    for (double& score : scores) score -= std::log(sum);
    result.push_back(std::move(scores));
  }
  return result;
}

/// log p(written and </s> | source), by teacher forcing.
inline double log_probability(const Tiny& tiny, const Tokens& source, const Tokens& written) {
  const auto steps = forced(tiny, source, written);
  double sum = steps.back()[kEnd];
  for (std::size_t i = 0; i < written.size(); ++i) sum += steps[i][static_cast<std::size_t>(written[i])];
  return sum;
}

/// The token sequences of hypotheses.
inline std::vector<Tokens> tokens_of(const std::vector<Hypothesis>& hypotheses) {
  std::vector<Tokens> result;
  for (const Hypothesis& one : hypotheses) result.push_back(one.tokens);
  return result;
}

}  // namespace weft

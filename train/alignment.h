// Which source token each target token looked at: cross-attention as a word alignment. Of the last decoder layer that shows
// its attention, the mean over its heads, and over the models of an ensemble.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/data/batch.h"
#include "weft/train/model_ensemble.h"

namespace weft {

/// The attention of one sentence pair under teacher forcing: weight(j, i) is what the step that is to say target token j
/// gives to source token i. The last index of each side is </s>. A target token's weights sum to 1.
struct Alignment {
  Index source = 0, target = 0;  ///< tokens, without </s>
  std::vector<float> weights;    ///< [target + 1, source + 1]

  float weight(Index j, Index i) const { return weights[static_cast<std::size_t>(j * (source + 1) + i)]; }
};

/// The attention weights [heads, target rows, source rows] of each pair of a batch, in one model. Throws ConfigError if no
/// layer of the model shows its cross-attention, and ShapeError if the one that does shows other shapes.
std::vector<Tensor> cross_attention_weights(const Transformer& model, const Batch& batch);

/// The alignments of the pairs of a batch; its `target` is not read. Throws as cross_attention_weights does.
std::vector<Alignment> align(TransformerSpan models, const Batch& batch);

/// For each target token, </s> aside, the source token, </s> aside, with the largest weight; of equal ones the first. There
/// must be a source token.
std::vector<Index> best_sources(const Alignment& alignment);

/// The links of best_sources in the Pharaoh format: "i-j" for source token i and target token j, from 0, in the order of
/// the target, with spaces between.
std::string pharaoh(const Alignment& alignment);

/// One line of JSON: the number of the line, the tokens of both sides with </s>, and the weights, for each target token
/// those of all source tokens. Of a pair without tokens all three are empty.
std::string alignment_json(Index line, std::span<const std::string> source, std::span<const std::string> target,
                           const Alignment& alignment);

/// What stands for an unknown target token that looked at `source`: the source token as it reads, without the marks that
/// give it the source's spacing, so that join() sets it by the rules of the target.
std::string copied_token(const Tokenizer& tokenizer, const std::string& source);

}  // namespace weft

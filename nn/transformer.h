// The encoder-decoder Transformer. Vaswani et al. 2017, "Attention is all you need".
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/nn/decode_state.h"
#include "weft/nn/layers.h"
#include "weft/nn/registry.h"

namespace weft {

/// The shape of a Transformer; the names are those of the config's section "model".
struct TransformerOptions {
  Index source_vocabulary = 0, target_vocabulary = 0;
  Index d_model = 128, heads = 4, encoder_layers = 2, decoder_layers = 2, d_feed_forward = 512;
  Index max_length = 512;
  double dropout = 0.1;
  double embedding_dropout = -1;  ///< below 0: as dropout
  double attention_dropout = 0, activation_dropout = 0;
  std::string activation = "relu";       ///< relu, gelu or silu
  bool norm_first = false;               ///< pre-norm with a final norm, instead of post-norm
  std::string tied_embeddings = "none";  ///< none; decoder: target embedding and output; all: source embedding too
  bool scale_embeddings = true;          ///< by sqrt(d_model)
  std::string feed_forward = "default", norm = "layer_norm", positions = "sinusoidal", self_attention = "multi_head",
              cross_attention = "multi_head", encoder_layer = "default", decoder_layer = "default";
};

/// Throws ConfigError for an impossible option (vocabularies aside) or a layer name that the registry does not know.
void check_options(const TransformerOptions& options, const Registry& registry);

/// What the layers of the encoder, or with `causal` of the decoder, are told. Throws ConfigError for an activation that
/// does not exist.
LayerOptions layer_options(const TransformerOptions& options, const Registry& registry, bool causal);

/// Source tokens of a packed batch and, for training, what the decoder reads and is to say.
struct TransformerBatch {
  std::span<const TokenId> source;
  const Ragged& source_rows;
  std::span<const TokenId> decoder_input, target;  ///< both of target_rows: <s> y1 … yn and y1 … yn </s>
  const Ragged& target_rows;
};

/// A Transformer and its parameters' names.
class Transformer : public Module {
 public:
  /// Throws ConfigError as check_options does, and for vocabularies that do not fit.
  Transformer(ParameterSet& parameters, const TransformerOptions& options, const Registry& registry);

  /// The encoder's output [source rows, d_model], "memory". Throws ShapeError for a sequence over max_length.
  Var encode(const Context& context, std::span<const TokenId> source, const Ragged& rows) const;
  /// The decoder's last states [target rows, d_model] for given decoder inputs.
  Var decode(const Context& context, std::span<const TokenId> decoder_input, const Ragged& rows, const Var& memory,
             const Ragged& memory_rows) const;
  /// The output projection: [rows, d_model] to [rows, target vocabulary].
  Var logits(const Context& context, const Var& states) const;
  /// The cross-entropy of a batch under teacher forcing (see linear_cross_entropy).
  Var loss(const Context& context, const TransformerBatch& batch, const CrossEntropyOptions& options) const;

  /// The logits [rows, target vocabulary] for what follows the tokens that `state` was advanced by.
  Tensor next_logits(DecodeState& state) const;

  const TransformerOptions& options() const { return options_; }

 private:
  Var embed(const Context& context, const Embedding& embedding, const Layer& positions, const Dropout& dropout,
            std::span<const TokenId> ids, const Ragged& rows) const;
  Var output_weight(const Context& context) const;

  TransformerOptions options_;
  std::unique_ptr<Embedding> source_embedding_;  // null when tied to the target's
  Embedding target_embedding_;
  std::unique_ptr<Layer> source_positions_, target_positions_;
  Dropout source_dropout_, target_dropout_;
  std::vector<std::unique_ptr<Layer>> encoder_layers_;
  std::vector<std::unique_ptr<CrossLayer>> decoder_layers_;
  std::unique_ptr<Layer> encoder_norm_, decoder_norm_;  // with norm_first only
  std::unique_ptr<Parameter> output_weight_;            // null when tied
  Parameter output_bias_;
};

}  // namespace weft

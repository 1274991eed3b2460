#include "weft/nn/transformer.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/core/error.h"

namespace weft {
namespace {

Activation activation_of(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "silu") return Activation::kSilu;
  throw ConfigError(fmt::format("model.activation: \"{}\" is not one of relu, gelu, silu", name));
}

real embedding_dropout(const TransformerOptions& o) {
  return static_cast<real>(o.embedding_dropout < 0 ? o.dropout : o.embedding_dropout);
}

void require(bool good, const std::string& text) {
  if (!good) throw ConfigError(text);
}

const TransformerOptions& checked(const TransformerOptions& o, const Registry& registry) {
  check_options(o, registry);
  require(o.source_vocabulary >= 1 && o.target_vocabulary >= 1, "model: a vocabulary is empty");
  require(o.tied_embeddings != "all" || o.source_vocabulary == o.target_vocabulary,
          fmt::format("model.tied_embeddings \"all\" needs one vocabulary for both sides (found {} and {} tokens); set "
                      "data.shared_vocabulary to true",
                      o.source_vocabulary, o.target_vocabulary));
  return o;
}

}  // namespace

void check_options(const TransformerOptions& o, const Registry& registry) {
  require(o.heads >= 1 && o.d_model >= 1 && o.d_model % o.heads == 0,
          fmt::format("model.d_model ({}) must be a multiple of model.heads ({})", o.d_model, o.heads));
  require(o.d_feed_forward >= 1 && o.encoder_layers >= 0 && o.decoder_layers >= 0 && o.max_length >= 1,
          "model: d_feed_forward and max_length must be at least 1, the numbers of layers at least 0");
  require(o.tied_embeddings == "none" || o.tied_embeddings == "decoder" || o.tied_embeddings == "all",
          fmt::format("model.tied_embeddings: \"{}\" is not one of none, decoder, all", o.tied_embeddings));
  activation_of(o.activation);
  registry.require("feed_forward", o.feed_forward);
  registry.require("norm", o.norm);
  registry.require("positions", o.positions);
  registry.require("self_attention", o.self_attention);
  registry.require("cross_attention", o.cross_attention);
  registry.require("encoder_layer", o.encoder_layer);
  registry.require("decoder_layer", o.decoder_layer);
}

LayerOptions layer_options(const TransformerOptions& o, const Registry& registry, bool causal) {
  return {.d_model = o.d_model,
          .heads = o.heads,
          .d_feed_forward = o.d_feed_forward,
          .max_length = o.max_length,
          .dropout = static_cast<real>(o.dropout),
          .attention_dropout = static_cast<real>(o.attention_dropout),
          .activation_dropout = static_cast<real>(o.activation_dropout),
          .activation = activation_of(o.activation),
          .norm_first = o.norm_first,
          .causal = causal,
          .feed_forward = o.feed_forward,
          .norm = o.norm,
          .self_attention = o.self_attention,
          .cross_attention = o.cross_attention,
          .registry = &registry};
}

Transformer::Transformer(ParameterSet& parameters, const TransformerOptions& options, const Registry& registry)
    : Module(parameters),
      options_(checked(options, registry)),
      source_embedding_(options_.tied_embeddings == "all"
                            ? nullptr
                            : std::make_unique<Embedding>(*this, "source_embedding", options_.source_vocabulary,
                                                          options_.d_model, options_.scale_embeddings)),
      target_embedding_(*this, "target_embedding", options_.target_vocabulary, options_.d_model,
                        options_.scale_embeddings),
      source_positions_(registry.make_layer("positions", options_.positions, *this, "source_positions",
                                            layer_options(options_, registry, false))),
      target_positions_(registry.make_layer("positions", options_.positions, *this, "target_positions",
                                            layer_options(options_, registry, true))),
      source_dropout_(*this, "source_dropout", embedding_dropout(options_)),
      target_dropout_(*this, "target_dropout", embedding_dropout(options_)),
      output_weight_(options_.tied_embeddings != "none"
                         ? nullptr
                         : std::make_unique<Parameter>(*this, "output.weight",
                                                       Shape{options_.target_vocabulary, options_.d_model},
                                                       Init::glorot(options_.d_model, options_.target_vocabulary))),
      output_bias_(*this, "output.bias", {options_.target_vocabulary}, Init::constant(0)) {
  const LayerOptions encoder = layer_options(options_, registry, false),
                     decoder = layer_options(options_, registry, true);
  for (Index i = 0; i < options_.encoder_layers; ++i) {
    encoder_layers_.push_back(registry.make_layer("encoder_layer", options_.encoder_layer, *this,
                                                  fmt::format("encoder.layers.{}", i), encoder));
  }
  for (Index i = 0; i < options_.decoder_layers; ++i) {
    decoder_layers_.push_back(registry.make_cross_layer("decoder_layer", options_.decoder_layer, *this,
                                                        fmt::format("decoder.layers.{}", i), decoder));
  }
  if (options_.norm_first) {
    encoder_norm_ = registry.make_layer("norm", options_.norm, *this, "encoder.norm", encoder);
    decoder_norm_ = registry.make_layer("norm", options_.norm, *this, "decoder.norm", decoder);
  }
}

Var Transformer::embed(const Context& context, const Embedding& embedding, const Layer& positions,
                       const Dropout& dropout, std::span<const TokenId> ids, const Ragged& rows) const {
  return dropout(context, positions(context, embedding(context, ids), rows));
}

Var Transformer::encode(const Context& context, std::span<const TokenId> source, const Ragged& rows) const {
  const Embedding& embedding = source_embedding_ != nullptr ? *source_embedding_ : target_embedding_;
  Var x = embed(context, embedding, *source_positions_, source_dropout_, source, rows);
  for (const auto& layer : encoder_layers_) x = (*layer)(context, x, rows);
  return encoder_norm_ != nullptr ? (*encoder_norm_)(context, x, rows) : x;
}

Var Transformer::decode(const Context& context, std::span<const TokenId> decoder_input, const Ragged& rows,
                        const Var& memory, const Ragged& memory_rows) const {
  Var x = embed(context, target_embedding_, *target_positions_, target_dropout_, decoder_input, rows);
  for (const auto& layer : decoder_layers_) x = (*layer)(context, x, rows, memory, memory_rows);
  return decoder_norm_ != nullptr ? (*decoder_norm_)(context, x, rows) : x;
}

Var Transformer::output_weight(const Context& context) const {
  return output_weight_ != nullptr ? (*output_weight_)(context) : target_embedding_.weight(context);
}

Var Transformer::logits(const Context& context, const Var& states) const {
  return linear(states, output_weight(context), output_bias_(context));
}

Var Transformer::loss(const Context& context, const TransformerBatch& batch, const CrossEntropyOptions& options) const {
  const Var memory = encode(context, batch.source, batch.source_rows);
  const Var states = decode(context, batch.decoder_input, batch.target_rows, memory, batch.source_rows);
  return linear_cross_entropy(states, output_weight(context), output_bias_(context), batch.target, options);
}

Tensor Transformer::next_logits(DecodeState& state) const {
  const bool incremental = target_positions_->incremental() &&
                           (decoder_norm_ == nullptr || decoder_norm_->incremental()) &&
                           std::all_of(decoder_layers_.begin(), decoder_layers_.end(),
                                       [](const auto& layer) { return layer->incremental(); });
  Context context;
  std::vector<TokenId> ids;
  Ragged rows;
  if (incremental) {
    context.decoding = &state;
    for (Index row = 0; row < state.rows(); ++row) {
      ids.push_back(state.last_token(row));
      rows.append(1);
    }
    const Var states = decode(context, ids, rows, state.memory(), state.memory_rows());
    return logits(context, states).value();
  }
  // A layer keeps no past: run the whole prefix of every row, each with a copy of its sentence's memory.
  std::vector<Var> memories, last;
  Ragged memory_rows;
  for (Index sentence = 0; sentence < state.memory_rows().sequences(); ++sentence) {
    for (Index row = 0; row < state.rows_of_sentences().length(sentence); ++row) {
      memories.push_back(
          state.memory().row_range(state.memory_rows().begin(sentence), state.memory_rows().end(sentence)));
      memory_rows.append(state.memory_rows().length(sentence));
    }
  }
  for (Index row = 0; row < state.rows(); ++row) {
    const std::vector<TokenId> prefix = state.prefix(row);
    ids.insert(ids.end(), prefix.begin(), prefix.end());
    rows.append(static_cast<Index>(prefix.size()));
  }
  const Var states = decode(context, ids, rows, concat_rows(memories), memory_rows);
  for (Index row = 0; row < state.rows(); ++row) last.push_back(slice_rows(states, rows.end(row) - 1, rows.end(row)));
  return logits(context, concat_rows(last)).value();
}

}  // namespace weft

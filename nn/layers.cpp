#include "weft/nn/layers.h"

#include <cmath>

#include "weft/nn/decode_state.h"

namespace weft {
namespace {

double inverse_root(Index d_model) { return 1 / std::sqrt(static_cast<double>(d_model)); }

/// The position of the first row of each sequence.
Index first_position(const Context& context) { return context.decoding != nullptr ? context.decoding->step() : 0; }

Leaf& declare_group(Module& parent, const std::vector<std::string_view>& names, std::string_view member,
                    const Shape& shape, const Init& init) {
  std::vector<ParameterEntry> parts;
  for (const std::string_view name : names) {
    parts.push_back({parent.key(name) + "." + std::string(member), shape, init, 0});
  }
  return parent.parameters().declare(parts);
}

}  // namespace

Linear::Linear(Module& parent, std::string_view name, Index in, Index out, bool bias)
    : Module(parent, name), weight_(*this, "weight", {out, in}, Init::glorot(in, out)) {
  if (bias) bias_.emplace_back(*this, "bias", Shape{out}, Init::constant(0));
}

Var Linear::operator()(const Context& context, const Var& x, Activation activation) const {
  return linear(x, weight_(context), bias_.empty() ? Var() : bias_[0](context), activation);
}

LinearGroup::LinearGroup(Module& parent, const std::vector<std::string_view>& names, Index in, Index out)
    : parameters_(parent.parameters()),
      weights_(declare_group(parent, names, "weight", {out, in}, Init::glorot(in, out))),
      biases_(declare_group(parent, names, "bias", {out}, Init::constant(0))) {}

Var LinearGroup::operator()(const Context& context, const Var& x) const {
  parameters_.allocate();
  if (context.tape == nullptr) return linear(x, weights_.value, biases_.value);
  return linear(x, context.tape->watch(weights_), context.tape->watch(biases_));
}

Embedding::Embedding(Module& parent, std::string_view name, Index vocabulary, Index d_model, bool scaled)
    : Module(parent, name),
      weight_(*this, "weight", {vocabulary, d_model}, Init::normal(inverse_root(d_model))),
      factor_(scaled ? std::sqrt(static_cast<real>(d_model)) : real{1}) {}

Var Embedding::operator()(const Context& context, std::span<const TokenId> ids) const {
  return embedding(weight_(context), ids, factor_);
}

LayerNorm::LayerNorm(Module& parent, std::string_view name, const LayerOptions& options)
    : Layer(parent, name),
      weight_(*this, "weight", {options.d_model}, Init::constant(1)),
      bias_(*this, "bias", {options.d_model}, Init::constant(0)) {}

Var LayerNorm::operator()(const Context& context, const Var& x, const Ragged&) const {
  return layer_norm(x, weight_(context), bias_(context), kEpsilon);
}

Var LayerNorm::add(const Context& context, const Var& x, const Var& y, const DropoutMask& dropout) const {
  return add_norm(x, y, weight_(context), bias_(context), kEpsilon, dropout);
}

Dropout::Dropout(const Module& owner, std::string_view name, real probability)
    : probability_(probability), site_(random_site(owner.key(name))) {}

DropoutMask Dropout::mask(const Context& context) const {
  return {context.training ? probability_ : real{0}, context.random, site_};
}

FeedForward::FeedForward(Module& parent, std::string_view name, const LayerOptions& options)
    : Layer(parent, name),
      inner_(*this, "inner", options.d_model, options.d_feed_forward),
      output_(*this, "output", options.d_feed_forward, options.d_model),
      dropout_(*this, "dropout", options.activation_dropout),
      activation_(options.activation) {}

Var FeedForward::operator()(const Context& context, const Var& x, const Ragged&) const {
  return output_(context, dropout_(context, inner_(context, x, activation_)));
}

SinusoidalPositions::SinusoidalPositions(Module& parent, std::string_view name, const LayerOptions& options)
    : Layer(parent, name), table_({options.max_length, options.d_model}) {
  const Index columns = options.d_model;
  for (Index p = 0; p < options.max_length; ++p) {
    for (Index d = 0; d < columns; ++d) {
      const double exponent = static_cast<double>(d / 2 * 2) / static_cast<double>(columns);
      const double angle = static_cast<double>(p) / std::pow(10000.0, exponent);
      table_.data()[p * columns + d] = static_cast<real>(d % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
}

Var SinusoidalPositions::operator()(const Context& context, const Var& x, const Ragged& rows) const {
  return add_positions(x, table_, rows, first_position(context));
}

LearnedPositions::LearnedPositions(Module& parent, std::string_view name, const LayerOptions& options)
    : Layer(parent, name),
      weight_(*this, "weight", {options.max_length, options.d_model}, Init::normal(inverse_root(options.d_model))) {}

Var LearnedPositions::operator()(const Context& context, const Var& x, const Ragged& rows) const {
  return add_positions(x, weight_(context), rows, first_position(context));
}

}  // namespace weft

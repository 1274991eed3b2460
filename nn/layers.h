// The small layers: linear maps, embeddings, norms, dropout, feed-forward, positions.
#pragma once

#include <string_view>
#include <vector>

#include "weft/autograd/ops.h"
#include "weft/nn/module.h"
#include "weft/nn/registry.h"

namespace weft {

/// activation(x weight^T + bias), with weight [out, in] (Glorot) and bias [out] (zero).
class Linear : public Module {
 public:
  Linear(Module& parent, std::string_view name, Index in, Index out, bool bias = true);
  /// x [rows, in] to [rows, out].
  Var operator()(const Context& context, const Var& x, Activation activation = Activation::kNone) const;

 private:
  Parameter weight_;
  std::vector<Parameter> bias_;  // one or none
};

/// Several linear maps of the same input, computed as one: to their results side by side, [rows, maps * out]. Their
/// parameters are those of Linear members `names` of `parent`.
class LinearGroup {
 public:
  LinearGroup(Module& parent, const std::vector<std::string_view>& names, Index in, Index out);
  Var operator()(const Context& context, const Var& x) const;

 private:
  ParameterSet& parameters_;
  Leaf& weights_;
  Leaf& biases_;
};

/// A vector for each token: weight [vocabulary, d_model], normal with deviation d_model^-0.5, which suits both an
/// embedding scaled by sqrt(d_model) and its use as output projection.
class Embedding : public Module {
 public:
  Embedding(Module& parent, std::string_view name, Index vocabulary, Index d_model, bool scaled);
  /// [ids] to [ids, d_model], times sqrt(d_model) if scaled (Vaswani et al. 2017, section 3.4).
  Var operator()(const Context& context, std::span<const TokenId> ids) const;
  /// The table itself, for tying.
  Var weight(const Context& context) const { return weight_(context); }

 private:
  Parameter weight_;
  real factor_;
};

/// Layer normalisation with weight (one) and bias (zero), epsilon 1e-5. Ba et al. 2016.
class LayerNorm : public Layer {
 public:
  static constexpr real kEpsilon = real(1e-5);
  LayerNorm(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override;
  /// LayerNorm(x + dropout(y)) in one operation.
  Var add(const Context& context, const Var& x, const Var& y, const DropoutMask& dropout) const;
  bool incremental() const override { return true; }

 private:
  Parameter weight_, bias_;
};

/// A place that drops elements in training, with a mask of its own at each step. The mask is that of its name: two of the
/// same owner must be called differently. What a norm drops is apart from what is dropped around it (see AddNorm).
class Dropout {
 public:
  Dropout(const Module& owner, std::string_view name, real probability);
  /// What an op needs to drop elements here in this forward pass: nothing unless training.
  DropoutMask mask(const Context& context) const;
  Var operator()(const Context& context, const Var& x) const { return dropout(x, mask(context)); }

 private:
  real probability_;
  std::uint64_t site_;
};

/// output(dropout(activation(inner(x)))). Vaswani et al. 2017, section 3.3.
class FeedForward : public Layer {
 public:
  FeedForward(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override;
  bool incremental() const override { return true; }

 private:
  Linear inner_, output_;
  Dropout dropout_;
  Activation activation_;
};

/// Adds sin(p / 10000^(2i/d_model)) to even and the cosine to odd columns 2i, 2i+1 at position p. Vaswani et al. 2017,
/// section 3.5. Nothing is learned.
class SinusoidalPositions : public Layer {
 public:
  SinusoidalPositions(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override;
  bool incremental() const override { return true; }

 private:
  Tensor table_;
};

/// Adds a learned vector for each position: weight [max_length, d_model], normal with deviation d_model^-0.5.
class LearnedPositions : public Layer {
 public:
  LearnedPositions(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override;
  bool incremental() const override { return true; }

 private:
  Parameter weight_;
};

}  // namespace weft

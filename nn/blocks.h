// Encoder and decoder layers, made of sublayers with a residual connection and a norm each.
#pragma once

#include <memory>

#include "weft/nn/layers.h"

namespace weft {

/// "Add & Norm": the residual connection and norm around a sublayer. Post-norm, the paper's form, is
/// norm(x + dropout(sublayer(x))); pre-norm is x + dropout(sublayer(norm(x))) (Xiong et al. 2020).
/// The norm draws from a random stream of its own, so that no mask within it is that of `dropout`.
class AddNorm {
 public:
  /// The norm is a member `name` of `owner`.
  AddNorm(Module& owner, std::string_view name, const LayerOptions& options);

  /// `sublayer` is called once, as sublayer(Var) -> Var.
  template <class Sublayer>
  Var operator()(const Context& context, const Var& x, const Ragged& rows, Sublayer sublayer) const {
    if (norm_first_) return residual(x, sublayer(norm(context, x, rows)), dropout_.mask(context));
    return add_and_norm(context, x, sublayer(x), rows);
  }

  /// As Layer::incremental, of the norm.
  bool incremental() const { return norm_->incremental(); }

 private:
  Var norm(const Context& context, const Var& x, const Ragged& rows) const;
  Var add_and_norm(const Context& context, const Var& x, const Var& y, const Ragged& rows) const;

  std::unique_ptr<Layer> norm_;
  const LayerNorm* layer_norm_;  // norm_ if it is just that: then the sum and the norm are one operation
  Dropout dropout_;
  bool norm_first_;
};

/// Self-attention and feed-forward. Vaswani et al. 2017, section 3.1.
class EncoderLayer : public Layer {
 public:
  EncoderLayer(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override;

 private:
  std::unique_ptr<Layer> self_attention_;
  AddNorm self_attention_norm_;
  std::unique_ptr<Layer> feed_forward_;
  AddNorm feed_forward_norm_;
};

/// Causal self-attention, attention to the encoder's output, and feed-forward. Vaswani et al. 2017, section 3.1.
class DecoderLayer : public CrossLayer {
 public:
  DecoderLayer(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override;
  bool incremental() const override;

 private:
  std::unique_ptr<Layer> self_attention_;
  AddNorm self_attention_norm_;
  std::unique_ptr<CrossLayer> cross_attention_;
  AddNorm cross_attention_norm_;
  std::unique_ptr<Layer> feed_forward_;
  AddNorm feed_forward_norm_;
};

}  // namespace weft

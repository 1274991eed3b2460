#include "weft/nn/blocks.h"

namespace weft {

AddNorm::AddNorm(Module& owner, std::string_view name, const LayerOptions& options)
    : norm_(options.registry->make_layer("norm", options.norm, owner, name, options)),
      layer_norm_(dynamic_cast<const LayerNorm*>(norm_.get())),
      dropout_(owner, std::string(name) + ".dropout", options.dropout),
      norm_first_(options.norm_first) {}

Var AddNorm::add_and_norm(const Context& context, const Var& x, const Var& y, const Ragged& rows) const {
  if (layer_norm_ != nullptr) return layer_norm_->add(context, x, y, dropout_.mask(context));
  return (*norm_)(context, residual(x, y, dropout_.mask(context)), rows);
}

EncoderLayer::EncoderLayer(Module& parent, std::string_view name, const LayerOptions& options)
    : Layer(parent, name),
      self_attention_(
          options.registry->make_layer("self_attention", options.self_attention, *this, "self_attention", options)),
      self_attention_norm_(*this, "self_attention_norm", options),
      feed_forward_(options.registry->make_layer("feed_forward", options.feed_forward, *this, "feed_forward", options)),
      feed_forward_norm_(*this, "feed_forward_norm", options) {}

Var EncoderLayer::operator()(const Context& context, const Var& x, const Ragged& rows) const {
  const Var attended =
      self_attention_norm_(context, x, rows, [&](const Var& y) { return (*self_attention_)(context, y, rows); });
  return feed_forward_norm_(context, attended, rows, [&](const Var& y) { return (*feed_forward_)(context, y, rows); });
}

DecoderLayer::DecoderLayer(Module& parent, std::string_view name, const LayerOptions& options)
    : CrossLayer(parent, name),
      self_attention_(
          options.registry->make_layer("self_attention", options.self_attention, *this, "self_attention", options)),
      self_attention_norm_(*this, "self_attention_norm", options),
      cross_attention_(options.registry->make_cross_layer("cross_attention", options.cross_attention, *this,
                                                          "cross_attention", options)),
      cross_attention_norm_(*this, "cross_attention_norm", options),
      feed_forward_(options.registry->make_layer("feed_forward", options.feed_forward, *this, "feed_forward", options)),
      feed_forward_norm_(*this, "feed_forward_norm", options) {}

Var DecoderLayer::operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                             const Ragged& memory_rows) const {
  const Var past =
      self_attention_norm_(context, x, rows, [&](const Var& y) { return (*self_attention_)(context, y, rows); });
  const Var informed = cross_attention_norm_(
      context, past, rows, [&](const Var& y) { return (*cross_attention_)(context, y, rows, memory, memory_rows); });
  return feed_forward_norm_(context, informed, rows, [&](const Var& y) { return (*feed_forward_)(context, y, rows); });
}

bool DecoderLayer::incremental() const {
  return self_attention_->incremental() && self_attention_norm_.incremental() && cross_attention_->incremental() &&
         cross_attention_norm_.incremental() && feed_forward_->incremental() && feed_forward_norm_.incremental();
}

}  // namespace weft

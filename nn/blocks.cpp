#include "weft/nn/blocks.h"

#include <typeinfo>

namespace weft {
namespace {

/// Null for any other norm, also for one derived from LayerNorm, which may do something else.
const LayerNorm* layer_norm_itself(const Layer& norm) {
  return typeid(norm) == typeid(LayerNorm) ? static_cast<const LayerNorm*>(&norm) : nullptr;
}

}  // namespace

AddNorm::AddNorm(Module& owner, std::string_view name, const LayerOptions& options)
    : norm_(options.registry->make_layer("norm", options.norm, owner, name, options)),
      layer_norm_(layer_norm_itself(*norm_)),
      dropout_(owner, std::string(name) + ".dropout", options.dropout),
      norm_first_(options.norm_first) {}

Var AddNorm::norm(const Context& context, const Var& x, const Ragged& rows) const {
  Context within = context;
  within.random.seed ^= random_site("norm");  // a Dropout "dropout" of the norm has the name of dropout_, not its mask
  return (*norm_)(within, x, rows);
}

Var AddNorm::add_and_norm(const Context& context, const Var& x, const Var& y, const Ragged& rows) const {
  if (layer_norm_ != nullptr) return layer_norm_->add(context, x, y, dropout_.mask(context));
  return norm(context, residual(x, y, dropout_.mask(context)), rows);
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

// A layer of this project's own for the slot "feed_forward".
#pragma once

#include <weft/nn/layers.h>

#include "silu_mul.h"

/// down(silu(gate(x)) * up(x)). Shazeer 2020, "GLU variants improve Transformer".
class GatedFeedForward : public weft::Layer {
 public:
  GatedFeedForward(weft::Module& parent, std::string_view name, const weft::LayerOptions& o)
      : Layer(parent, name),
        gate_(*this, "gate", o.d_model, o.d_feed_forward),
        up_(*this, "up", o.d_model, o.d_feed_forward),
        down_(*this, "down", o.d_feed_forward, o.d_model),
        dropout_(*this, "dropout", o.activation_dropout) {}

  weft::Var operator()(const weft::Context& c, const weft::Var& x, const weft::Ragged&) const override {
    return down_(c, dropout_(c, silu_mul(gate_(c, x), up_(c, x))));
  }

  bool incremental() const override { return true; }  // a row of the result depends on the same row of x alone

 private:
  weft::Linear gate_, up_, down_;
  weft::Dropout dropout_;
};

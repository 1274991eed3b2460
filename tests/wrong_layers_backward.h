// Layers with a wrong backward pass, for the check of layers to find.
#pragma once

#include "wrong_layers.h"

namespace weft {

/// The default feed-forward layer, with the gradient of its result a tenth too large.
struct WrongBackward : FeedForward {
  using FeedForward::FeedForward;
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    const Var y = FeedForward::operator()(c, x, rows);
    if (y.tape() == nullptr) return y;
    return y.tape()->record("wrong", y.value(), [slot = y.slot()](const Tensor& dy, Tape& tape) {
      accumulate_scaled(dy.size(), static_cast<real>(1.1), dy.data(), tape.sink(slot));
    });
  }
};

/// Its gradient is three times too large in the rows that a function tells.
template <bool (*kWrong)(const Ragged& rows, Index sentence, Index row)>
struct WrongBackwardWhere : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    const Var y = scale(x, 2);
    if (y.tape() == nullptr) return y;
    return y.tape()->record("wrong", y.value(), [slot = y.slot(), rows](const Tensor& dy, Tape& tape) {
      const Tensor dx = dy.clone();
      for (Index s = 0; s < rows.sequences(); ++s) {
        for (Index row = rows.begin(s); row < rows.end(s); ++row) {
          Tensor wrong = dx.row_range(row, row + (kWrong(rows, s, row) ? 1 : 0));
          for (real& value : wrong.values()) value *= 3;
        }
      }
      tape.give(slot, dx);
    });
  }
};
inline bool after_64_rows(const Ragged& rows, Index s, Index row) { return row >= rows.begin(s) + 64; }
inline bool in_single_row(const Ragged& rows, Index s, Index) { return rows.length(s) == 1; }
inline bool in_full_tiles(const Ragged& rows, Index s, Index) { return rows.length(s) % 4 == 0; }
inline bool late_in_batch(const Ragged&, Index, Index row) { return row >= 1000; }

/// A copy of x that writes the gradient where it should be added to what is there.
inline Var overwriting(const Var& x) {
  if (x.tape() == nullptr) return x;
  return x.tape()->record("overwriting", x.value(), [slot = x.slot()](const Tensor& dy, Tape& tape) {
    accumulate(dy.size(), dy.data(), {tape.sink(slot).data, 0});
  });
}

struct OverwritesInput : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override { return scale(overwriting(x), 2); }
};

struct OverwritesParameter : Layer {
  OverwritesParameter(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name), shift_(*this, "shift", {o.d_model}, Init::constant(0)) {}
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    return add(x, overwriting(shift_(c)));
  }

 private:
  Parameter shift_;
};

/// Sets the gradient of its result to zero where x is negative, in the tensor that it is given.
struct MasksGradientInPlace : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override {
    const Var y = relu(Var(x.value()));
    if (x.tape() == nullptr) return y;
    return x.tape()->record("masking", y.value(), [slot = x.slot(), y](const Tensor& dy, Tape& tape) {
      Tensor dx = dy;
      for (Index i = 0; i < dx.size(); ++i) dx.data()[i] = y.value().data()[i] > 0 ? dx.data()[i] : 0;
      tape.give(slot, dx);
    });
  }
};

/// tanh, whose backward pass reads a result that all layers of the kind keep in one place; or, which is right, under the
/// layer's name, as no other of a model has it.
template <bool kByName>
struct KeepsSaved : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override {
    const Tensor y = tanh(Var(x.value())).value();
    if (x.tape() == nullptr) return y;
    static std::map<std::string, Tensor> all;
    Tensor& saved = all[kByName ? name() : ""];
    saved = y;
    return x.tape()->record("tanh", y, [slot = x.slot(), &saved](const Tensor& dy, Tape& tape) {
      Tensor dx = dy.clone();
      for (Index i = 0; i < dx.size(); ++i) dx.data()[i] *= 1 - saved.data()[i] * saved.data()[i];
      tape.give(slot, dx);
    });
  }
};

/// Three times x, and its gradient twice that of y where it has no dropout, from a row of the batch on.
template <Index kFrom>
struct WrongWithoutDropout : Layer {
  WrongWithoutDropout(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name), dropout_(*this, "dropout", o.dropout), drops_(o.dropout > 0) {}
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    if (drops_ || x.tape() == nullptr) return dropout_(c, scale(x, 3));
    return x.tape()->record("wrong", scale(Var(x.value()), 3).value(), [slot = x.slot()](const Tensor& dy, Tape& tape) {
      Tensor dx = dy.clone();
      const Index width = dy.shape()[1], right = std::min(kFrom, dy.shape()[0]) * width;
      for (Index i = 0; i < dx.size(); ++i) dx.data()[i] *= i < right ? real(3) : real(2);
      tape.give(slot, dx);
    });
  }

 private:
  Dropout dropout_;
  bool drops_;
};

}  // namespace weft

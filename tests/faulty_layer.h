// A feed-forward layer that goes wrong on demand, for tests of what training does about numbers that are not finite.
#pragma once

#include <functional>
#include <limits>

#include "weft/autograd/ops.h"
#include "weft/nn/layers.h"

namespace weft {

/// What goes wrong, and when: a function of the update (or batch) and the layer's input, so that the same update fails
/// again.
struct Fault {
  enum class Kind { kResult, kGradient, kParameterGradient, kUnused, kValidation };
  Kind kind = Kind::kResult;
  std::function<bool(std::uint64_t step, const Var& x)> when = [](std::uint64_t, const Var&) { return false; };
  real value = std::numeric_limits<real>::quiet_NaN();
  Index row = 0;  ///< where it goes wrong
};

inline Fault& fault() {
  static Fault one;
  return one;
}

/// x + bias [columns], as the op "faulty".
inline Var faulty(const Var& x, const Var& bias, Fault::Kind kind, bool now) {
  Tape* tape = tape_of(x, bias);
  Tensor y(x.shape());
  const Index columns = x.cols();
  for (Index i = 0; i < x.value().size(); ++i) y.data()[i] = x.value().data()[i] + bias.value().data()[i % columns];
  if (now && kind == Fault::Kind::kResult) y.data()[fault().row * columns + 2] = fault().value;
  if (tape == nullptr) return y;
  return tape->record("faulty", y, [=, in = x.slot(), leaf = bias.slot()](const Tensor& gradient, Tape& t) {
    if (const Dst to = t.sink(leaf)) {
      for (Index c = 0; c < columns; ++c) {
        real sum = 0;
        for (Index r = 0; r < gradient.rows(); ++r) sum += gradient.data()[r * columns + c];
        to.data[c] = (to.beta != 0 ? to.data[c] : 0) + sum;
      }
      if (now && kind == Fault::Kind::kParameterGradient) to.data[5] = fault().value;
    }
    Tensor passed = gradient.clone();
    if (now && kind == Fault::Kind::kGradient) passed.data()[fault().row * columns + 3] = fault().value;
    t.give(in, passed);
  });
}

class FaultyFeedForward : public Layer {
 public:
  FaultyFeedForward(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name),
        inner_(*this, "inner", o.d_model, o.d_model),
        shift_(*this, "shift", {o.d_model}, Init::constant(0.5)) {}

  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    // Of the two layers of the model the encoder's alone goes wrong.
    using Kind = Fault::Kind;
    const Kind kind = fault().kind;
    const bool now =
        name().starts_with("encoder") && c.training == (kind != Kind::kValidation) && fault().when(c.random.step, x);
    if (now && kind == Kind::kUnused) faulty(x, shift_(c), Kind::kResult, true);
    const Var inner = inner_(c, x);  // before shift_ is read
    return faulty(inner, shift_(c), kind == Kind::kValidation ? Kind::kResult : kind, now);
  }
  bool incremental() const override { return true; }

 private:
  Linear inner_;
  Parameter shift_;
};

/// The standard layers and this one, as feed_forward "faulty".
inline const Registry& faulty_layers() {
  static const Registry registry = [] {
    Registry all = standard_layers();
    all.add<FaultyFeedForward>("feed_forward", "faulty");
    return all;
  }();
  return registry;
}

}  // namespace weft

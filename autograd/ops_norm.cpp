// Softmax and layer normalisation.
#include "weft/autograd/ops.h"
#include "weft/autograd/shape_checks.h"
#include "weft/core/error.h"

namespace weft {
namespace {

void require_gain_and_shift(std::string_view op, const Var& x, const Var& gain, const Var& shift) {
  require_shape(op, "gain", gain, {x.cols()}, "one for each column of x");
  require_shape(op, "shift", shift, {x.cols()}, "one for each column of x");
}

/// What the gradient of a normalisation needs of its input: the input or, where that will do, the result, which the next
/// operation most often keeps in any case (after Rota Bulo et al. 2018, "In-Place Activated BatchNorm", section 3).
class KeptInput {
 public:
  KeptInput(const Tensor& input, const Tensor& result, const Tensor& mean, const Tensor& gain, const Tensor& shift) {
    if (can_undo_norm(gain.size(), gain.data(), shift.data())) {
      rows_ = result;
      shift_ = shift;
    } else {
      rows_ = input;
      mean_ = mean;
    }
  }

  NormInput get() const { return {rows_.data(), mean_.data(), shift_.data()}; }

 private:
  Tensor rows_, mean_, shift_;
};

}  // namespace

Var softmax(const Var& x) {
  require_matrix("softmax", "x", x);
  Tensor y(x.shape());
  softmax(x.rows(), x.cols(), x.value().data(), y.data());
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  const Tensor result = y;
  return tape->record("softmax", std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    softmax_backward(dy.rows(), dy.cols(), result.data(), dy.data(), t.sink(x));
  });
}

Var log_softmax(const Var& x) {
  require_matrix("log_softmax", "x", x);
  Tensor y(x.shape());
  log_softmax(x.rows(), x.cols(), x.value().data(), y.data());
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  const Tensor result = y;
  return tape->record("log_softmax", std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    log_softmax_backward(dy.rows(), dy.cols(), result.data(), dy.data(), t.sink(x));
  });
}

Var layer_norm(const Var& x, const Var& gain, const Var& shift, real epsilon) {
  require_matrix("layer_norm", "x", x);
  require_gain_and_shift("layer_norm", x, gain, shift);
  const Index T = x.rows(), D = x.cols();
  Tape* tape = tape_of(x, gain, shift);
  Tensor y(x.shape());
  Tensor mean = tape != nullptr ? Tensor({T}) : Tensor(), rstd = tape != nullptr ? Tensor({T}) : Tensor();
  layer_norm(T, D, x.value().data(), gain.value().data(), shift.value().data(), epsilon, y.data(), mean.data(),
             rstd.data());
  if (tape == nullptr) return y;
  const KeptInput kept(x.value(), y, mean, gain.value(), shift.value());
  return tape->record(
      "layer_norm", std::move(y),
      [=, x = x.slot(), gain = gain.slot(), shift = shift.slot(), G = gain.value()](const Tensor& dy, Tape& t) {
        // In this order, which is the kernel's: gain and shift may be one variable.
        const Dst dx = t.sink(x), dgain = t.sink(gain), dshift = t.sink(shift);
        add_norm_backward({}, T, D, kept.get(), G.data(), rstd.data(), dy.data(), dx, {}, dgain, dshift);
      });
}

Var add_norm(const Var& x, const Var& y, const Var& gain, const Var& shift, real epsilon, const DropoutMask& dropout) {
  require_matrix("add_norm", "x", x);
  require_same_shape("add_norm", "x", x, "y", y);
  require_gain_and_shift("add_norm", x, gain, shift);
  const Index T = x.rows(), D = x.cols();
  Tape* tape = tape_of(x, y, gain, shift);
  const bool undo = tape == nullptr || can_undo_norm(D, gain.value().data(), shift.value().data());
  Tensor result(x.shape()), mean({T}), rstd({T});
  Tensor sum = undo ? result : Tensor(x.shape());
  add_norm(dropout, T, D, x.value().data(), y.value().data(), gain.value().data(), shift.value().data(), epsilon,
           sum.data(), result.data(), mean.data(), rstd.data());
  if (tape == nullptr) return result;
  const KeptInput kept(sum, result, mean, gain.value(), shift.value());
  return tape->record("add_norm", std::move(result),
                      [=, x = x.slot(), y = y.slot(), gain = gain.slot(), shift = shift.slot(), G = gain.value()](
                          const Tensor& dy, Tape& t) {
                        // In this order, which is the kernel's: any of them may be one variable.
                        const Dst dx = t.sink(x), dz = t.sink(y), dgain = t.sink(gain), dshift = t.sink(shift);
                        add_norm_backward(dropout, T, D, kept.get(), G.data(), rstd.data(), dy.data(), dx, dz, dgain,
                                          dshift);
                      });
}

}  // namespace weft

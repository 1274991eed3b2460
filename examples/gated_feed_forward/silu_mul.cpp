#include "silu_mul.h"

#include <weft/core/error.h>
#include <weft/core/threads.h>

#include <cmath>

using namespace weft;

namespace {

constexpr Index kTile = 4096;  // a number of its own, so that results never depend on how many threads there are

real sigmoid_of(real x) { return 1 / (1 + std::exp(-x)); }

void put(const Dst& to, Index i, real g) { to.data[i] = to.beta == 0 ? g : to.beta * to.data[i] + g; }

}  // namespace

Var silu_mul(const Var& a, const Var& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape()) {
    throw ShapeError("[silu_mul] b " + to_string(b.shape()) + " must have the shape of a " + to_string(a.shape()));
  }
  Tensor y(a.shape());
  const real* const a_data = a.value().data();
  const real* const b_data = b.value().data();
  real* const y_data = y.data();
  parallel_for(y.size(), kTile, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) y_data[i] = a_data[i] * sigmoid_of(a_data[i]) * b_data[i];
  });

  Tape* const tape = tape_of(a, b);
  if (tape == nullptr) return y;
  return tape->record("silu_mul", y, [a, b](const Tensor& dy, Tape& t) {
    const Dst da = t.sink(a.slot());
    const Dst db = t.sink(b.slot());
    parallel_for(dy.size(), kTile, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const real x = a.value().data()[i], s = sigmoid_of(x), g = dy.data()[i];
        if (da) put(da, i, g * b.value().data()[i] * s * (1 + x * (1 - s)));
        if (db) put(db, i, g * x * s);
      }
    });
  });
}

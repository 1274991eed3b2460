// The gradient check of modules: it passes what is right, and finds the one parameter whose gradient is wrong.
#include <doctest/doctest.h>

#include <cmath>

#include "op_table.h"
#include "temporary_folder.h"  // contains
#include "weft/nn/gradient_check.h"
#include "weft/nn/layers.h"
#include "weft/nn/module.h"

using namespace weft;

namespace {

/// weight_ x + shift_, whose backward may be told to get the gradient of the shift wrong by a factor.
class Affine : public Module {
 public:
  Affine(Module& parent, std::string_view name)
      : Module(parent, name),
        weight_(*this, "weight", {3, 4}, Init::glorot(4, 3)),
        shift_(*this, "shift", {3}, Init::constant(0.5)) {}

  Var operator()(const Context& context, const Var& x, real factor) const {
    Var shift = shift_(context);
    if (context.tape != nullptr) {
      shift = context.tape->record("wrong", shift.value(), [slot = shift.slot(), factor](const Tensor& dy, Tape& tape) {
        accumulate_scaled(dy.size(), factor, dy.data(), tape.sink(slot));
      });
    }
    return tanh(linear(x, weight_(context), shift));
  }

 private:
  Parameter weight_, shift_;
};

}  // namespace

TEST_CASE("a gradient check of a module names the parameter whose gradient is wrong") {
  ParameterSet parameters;
  Module root(parameters);
  const Affine affine(root, "affine");
  const Tensor before = parameters.values().clone();
  const std::vector<Tensor> inputs{random_tensor({2, 4}, 1)};
  for (const real factor : {real{1}, real(1.5)}) {
    CAPTURE(factor);
    const GradientCheck check = gradient_check(
        [&](const Context& context, Vars v) { return affine(context, v[0], factor); }, inputs, parameters);
    CHECK_MESSAGE(check.passed == (factor == 1), check.worst_place);
    CHECK(check.wrong == (factor == 1 ? std::vector<std::string>{} : std::vector<std::string>{"affine.shift"}));
    if (factor != 1) {
      CHECK(check.worst_error == doctest::Approx(1. / 3).epsilon(0.01));
      CHECK(check.worst_place.rfind("affine.shift, element ", 0) == 0);
    }
    const Tensor after = parameters.values();
    CHECK(std::equal(before.values().begin(), before.values().end(), after.values().begin()));
  }
}

TEST_CASE("a gradient check of a module sees inputs, unused parameters, and shared ones") {
  ParameterSet parameters;
  Module root(parameters);
  const Linear map(root, "map", 4, 4), unused(root, "unused", 4, 4);
  const std::vector<Tensor> inputs{random_tensor({2, 4}, 2), random_tensor({2, 4}, 3)};
  const auto right = [&](const Context& context, Vars v) { return mul(map(context, map(context, v[0])), v[1]); };
  const GradientCheck check = gradient_check(right, inputs, parameters);
  CHECK_MESSAGE(check.passed, check.worst_place);
  CHECK_FALSE(check.worst_place.empty());
  const auto forgets_input = [&](const Context& context, Vars v) { return mul(map(context, v[0]), v[1].value()); };
  const GradientCheck wrong = gradient_check(forgets_input, inputs, parameters);
  CHECK_FALSE(wrong.passed);
  CHECK(wrong.worst_place.rfind("input 1, element ", 0) == 0);
  CHECK(wrong.wrong == std::vector<std::string>{"input 1"});
}

TEST_CASE("a gradient check tells a gradient that is zero or reversed however small the result is") {
  const std::vector<Tensor> inputs{random_tensor({2, 4}, 4)};
  for (const double size : {1., 1e-3, 1e-5}) {
    for (const double factor : {1., 0., -1.}) {
      CAPTURE(size);
      CAPTURE(factor);
      const auto function = [&](Vars v) {
        const Var y = scale(tanh(Var(v[0].value())), static_cast<real>(size));
        if (v[0].tape() == nullptr) return y;
        return v[0].tape()->record("small", y.value(), [=, x = v[0]](const Tensor& dy, Tape& tape) {
          Tensor dx(dy.shape());
          for (Index i = 0; i < dx.size(); ++i) {
            const double t = std::tanh(static_cast<double>(x.value().data()[i]));
            dx.data()[i] = static_cast<real>(factor * size * (1 - t * t)) * dy.data()[i];
          }
          tape.give(x.slot(), dx);
        });
      };
      const GradientCheck check = gradient_check(function, inputs);
      CHECK_MESSAGE(check.passed == (factor == 1), check.worst_place);
    }
  }
}

TEST_CASE("a gradient check in parts leaves no element out, and names the part") {
  const std::vector<Tensor> inputs{Tensor::full({10, 10}, real(0.5))};
  const auto wrong_at = [&](Index element, Index most_parts) {
    const Differentiable f = [&](std::span<const Var> v) {
      if (v[0].tape() == nullptr) return Var(v[0].value().clone());
      return v[0].tape()->record("wrong", v[0].value().clone(), [=, slot = v[0].slot()](const Tensor& dy, Tape& tape) {
        const Tensor dx = dy.clone();
        if (element >= 0) Tensor(dx).data()[element] *= -1;
        tape.give(slot, dx);
      });
    };
    return gradient_check(f, inputs, gradient_check_tolerance(), most_parts);
  };
  for (Index i = 0; i < 100; ++i) {
    CHECK(contains(wrong_at(i, 100).worst_place, "input 0, element " + std::to_string(i) + ":"));
    const GradientCheck in_parts = wrong_at(i, 7);  // parts of 15, 15, 14, 14, ... elements
    CHECK_FALSE(in_parts.passed);
    const Index begin = i < 30 ? i / 15 * 15 : 30 + (i - 30) / 14 * 14;
    CHECK(contains(in_parts.worst_place, "elements " + std::to_string(begin) + " to "));
  }
  const Differentiable no_number = [](std::span<const Var> v) { return sqrt(scale(v[0], 0)); };
  CHECK_FALSE(gradient_check(no_number, inputs).passed);
  CHECK(wrong_at(-1, 100).passed);
  CHECK(wrong_at(-1, 7).passed);
}

#include "weft/autograd/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/core/error.h"
#include "weft/core/random.h"

namespace weft {
namespace {

constexpr bool kDouble = sizeof(real) == sizeof(double);
constexpr double kStep = kDouble ? 0x1p-8 : 0x1p-4;  // the first step, for an element of magnitude up to 1
constexpr int kTries = 4;                            // how often the step is made smaller at a kink
constexpr double kFloor = kDouble ? 1e-6 : 1e-2;     // about the noise of a difference, where a gradient is zero

/// Weights that no mistake is likely to be orthogonal to, none of them near zero.
Tensor random_weights(const Shape& shape) {
  Random random(20170612);
  Tensor weights(shape);
  for (real& weight : weights.values()) {
    const double magnitude = 0.5 + random.uniform();
    weight = static_cast<real>(random.below(2) == 0 ? magnitude : -magnitude);
  }
  return weights;
}

/// The gradients of the weighted sum by a backward pass.
std::vector<Tensor> backward_gradients(const Differentiable& f, std::span<const Tensor> inputs, Tensor* weights) {
  Tape tape;
  std::vector<Var> variables;
  for (const Tensor& input : inputs) variables.push_back(tape.variable(input.clone()));
  const Var result = f(variables);
  if (!result.defined()) throw ShapeError("[gradient_check] the function gave an undefined Var; it must give a result");
  *weights = random_weights(result.shape());
  if (result.tape() != nullptr) {
    tape.backward(tape.record("weighted_sum", Tensor::zeros({1}),
                              [slot = result.slot(), w = *weights](const Tensor&, Tape& t) { t.give(slot, w); }));
  }
  std::vector<Tensor> gradients;
  for (const Var& variable : variables) gradients.push_back(tape.gradient(variable));
  return gradients;
}

/// Finite differences of the weighted sum.
class Numeric {
 public:
  Numeric(const Differentiable& f, std::span<const Tensor> inputs, const Tensor& weights)
      : f_(f), inputs_(inputs), weights_(weights), constants_(inputs.begin(), inputs.end()) {}

  /// The derivative for an element. Two extrapolated estimates must agree to within `precision` of their size; where
  /// they do not, a kink (as of relu) lies within reach, and smaller steps are tried.
  double derivative(std::size_t input, std::size_t element, double precision, double floor) {
    const double magnitude = std::abs(static_cast<double>(inputs_[input].values()[element]));
    double step = std::ldexp(kStep, std::clamp(std::ilogb(magnitude), 0, 60));  // a power of two: x + step is exact
    double best = 0;
    double least_doubt = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i, step /= 16) {
      const double coarse = central(input, element, step);
      const double middle = central(input, element, step / 2);
      const double fine = central(input, element, step / 4);
      // Richardson: the error of a central difference goes with the square of the step, so four thirds of the finer
      // less a third of the coarser cancels its leading term.
      const double first = middle + (middle - coarse) / 3;
      const double second = fine + (fine - middle) / 3;
      const double doubt = std::abs(second - first);
      if (!(doubt >= least_doubt)) {
        best = second;
        least_doubt = doubt;
      }
      if (doubt <= precision * std::max(std::abs(second), floor)) break;
    }
    return best;
  }

 private:
  double central(std::size_t input, std::size_t element, double step) {
    const double x = static_cast<double>(inputs_[input].values()[element]);
    const auto above = static_cast<real>(x + step);
    const auto below = static_cast<real>(x - step);
    const Tensor high = at(input, element, above);
    const Tensor low = at(input, element, below);
    if (high.shape() != weights_.shape() || low.shape() != weights_.shape()) {
      throw ShapeError(fmt::format("[gradient_check] results {} and {} of one function; the shape must stay the same",
                                   to_string(weights_.shape()), to_string(high.shape())));
    }
    double sum = 0;  // of differences, not a difference of sums, which would round more
    for (std::size_t i = 0; i < weights_.values().size(); ++i) {
      sum += static_cast<double>(weights_.values()[i]) *
             (static_cast<double>(high.values()[i]) - static_cast<double>(low.values()[i]));
    }
    return sum / (static_cast<double>(above) - static_cast<double>(below));
  }

  Tensor at(std::size_t input, std::size_t element, real value) {
    Tensor changed = inputs_[input].clone();  // fresh each time: the result may be a view of it
    changed.values()[element] = value;
    constants_[input] = changed;
    const Tensor result = f_(constants_).value();
    constants_[input] = inputs_[input];
    return result;
  }

  const Differentiable& f_;
  std::span<const Tensor> inputs_;
  const Tensor weights_;
  std::vector<Var> constants_;
};

}  // namespace

double gradient_check_tolerance() { return kDouble ? 1e-6 : 2e-2; }

GradientCheck gradient_check(const Differentiable& f, std::span<const Tensor> inputs, double tolerance) {
  Tensor weights;
  const std::vector<Tensor> gradients = backward_gradients(f, inputs, &weights);
  Numeric numeric(f, inputs, weights);
  GradientCheck check;
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    double largest = 0;
    for (const real g : gradients[input].values()) largest = std::max(largest, std::abs(static_cast<double>(g)));
    const double floor = std::max(0.01 * largest, kFloor);
    for (std::size_t element = 0; element < inputs[input].values().size(); ++element) {
      const double analytic = static_cast<double>(gradients[input].values()[element]);
      const double difference = numeric.derivative(input, element, 0.1 * tolerance, floor);
      double error = std::abs(analytic - difference) / std::max({std::abs(analytic), std::abs(difference), floor});
      if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
      if (error > check.worst_error || check.worst_place.empty()) {
        check.worst_error = error;
        check.worst_place =
            fmt::format("input {}, element {}: backward {}, numeric {}", input, element, analytic, difference);
      }
    }
  }
  check.passed = check.worst_error <= tolerance;
  return check;
}

}  // namespace weft

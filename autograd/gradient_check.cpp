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
constexpr double kFloor = 1e-6;                      // about the noise of a difference, where a gradient is zero
constexpr double kShare = kDouble ? 0 : 1e-2;        // and in float, of the result's root mean square up to 1

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

/// Elements of an input that are moved together: [begin, end), each up or down as chance has it; one alone goes up.
struct Part {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
  double sign(std::size_t element) const {
    if (size() == 1) return 1;
    const auto word = philox({static_cast<std::uint32_t>(element), 0, 0, 0}, 20170706)[0];
    return (word & 1) == 0 ? 1 : -1;
  }
};

/// An input's elements, each alone, or as `most` parts of it if there are more.
std::vector<Part> parts_of(Index size, Index most) {
  std::vector<Part> parts;
  const Index count = std::min(size, most);
  for (Index i = 0; i < count; ++i) {
    const auto begin = [&](Index part) {
      return static_cast<std::size_t>(size / count * part + std::min(part, size % count));
    };
    parts.push_back({begin(i), begin(i + 1)});
  }
  return parts;
}

/// The derivative for a part by a backward pass.
double derivative(const Tensor& gradient, const Part& part) {
  double sum = 0;
  for (std::size_t i = part.begin; i < part.end; ++i) sum += part.sign(i) * static_cast<double>(gradient.values()[i]);
  return sum;
}

/// The size of a part's derivative as far as it does not depend on the signs that the elements happen to have.
double norm(const Tensor& gradient, const Part& part) {
  double squares = 0;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    squares += static_cast<double>(gradient.values()[i]) * static_cast<double>(gradient.values()[i]);
  }
  return std::sqrt(squares);
}

/// Finite differences of the weighted sum.
class Numeric {
 public:
  Numeric(const Differentiable& f, std::span<const Tensor> inputs, const Tensor& weights)
      : f_(f), inputs_(inputs), weights_(weights), constants_(inputs.begin(), inputs.end()) {
    const Tensor result = f_(constants_).value();
    double squares = 0;
    for (std::size_t i = 0; i < weights_.values().size(); ++i) {
      const double term = static_cast<double>(weights_.values()[i]) * static_cast<double>(result.values()[i]);
      squares += term * term;
    }
    const auto count = static_cast<double>(std::max<std::size_t>(1, weights_.values().size()));
    least_ = std::max(kFloor, kShare * std::min(1.0, std::sqrt(squares / count)));
    rounding_ = 16 * static_cast<double>(std::numeric_limits<real>::epsilon()) * std::sqrt(squares);
  }

  /// A gradient that counts as zero, beside the noise of differences.
  double least() const { return least_; }

  struct Estimate {
    double value = 0;
    double doubt = std::numeric_limits<double>::infinity();  // what two estimates differ by, and in float the rounding
    double rounding = 0;
  };

  /// The derivative for a part. Two extrapolated estimates must agree to within `precision` of their size; where they do
  /// not, a kink (as of relu) lies within reach, and smaller steps are tried.
  Estimate derivative(std::size_t input, const Part& part, double precision, double floor) {
    double magnitude = 0;
    for (std::size_t i = part.begin; i < part.end; ++i) {
      magnitude = std::max(magnitude, std::abs(static_cast<double>(inputs_[input].values()[i])));
    }
    double step = std::ldexp(kStep, std::clamp(std::ilogb(magnitude), 0, 60));  // a power of two: x + step is exact
    step = std::ldexp(step, -(std::ilogb(static_cast<double>(part.size())) + 1) / 2);  // many move the sum further
    Estimate best;
    for (int i = 0; i < kTries; ++i, step /= 16) {
      const double coarse = central(input, part, step);
      const double middle = central(input, part, step / 2);
      const double fine = central(input, part, step / 4);
      // Richardson: the error of a central difference goes with the square of the step, so four thirds of the finer
      // less a third of the coarser cancels its leading term.
      const double first = middle + (middle - coarse) / 3;
      const double second = fine + (fine - middle) / 3;
      const double rounding = rounding_ / step, doubt = std::abs(second - first) + (kDouble ? 0 : rounding);
      if (!(doubt >= best.doubt)) best = {second, doubt, rounding};
      if (doubt <= precision * std::max(std::abs(second), floor)) break;
    }
    return best;
  }

 private:
  double central(std::size_t input, const Part& part, double step) {
    const Tensor high = at(input, part, step);
    const Tensor low = at(input, part, -step);
    if (high.shape() != weights_.shape() || low.shape() != weights_.shape()) {
      throw ShapeError(fmt::format("[gradient_check] results {} and {} of one function; the shape must stay the same",
                                   to_string(weights_.shape()), to_string(high.shape())));
    }
    double sum = 0;  // of differences, not a difference of sums, which would round more
    for (std::size_t i = 0; i < weights_.values().size(); ++i) {
      sum += static_cast<double>(weights_.values()[i]) *
             (static_cast<double>(high.values()[i]) - static_cast<double>(low.values()[i]));
    }
    if (part.size() > 1) return sum / (2 * step);
    const real above = moved(input, part, part.begin, step), below = moved(input, part, part.begin, -step);
    return sum / (static_cast<double>(above) - static_cast<double>(below));
  }

  real moved(std::size_t input, const Part& part, std::size_t element, double step) const {
    return static_cast<real>(static_cast<double>(inputs_[input].values()[element]) + part.sign(element) * step);
  }

  Tensor at(std::size_t input, const Part& part, double step) {
    Tensor changed = inputs_[input].clone();  // fresh each time: the result may be a view of it
    for (std::size_t i = part.begin; i < part.end; ++i) changed.values()[i] = moved(input, part, i, step);
    constants_[input] = changed;
    const Tensor result = f_(constants_).value();
    constants_[input] = inputs_[input];
    return result;
  }

  const Differentiable& f_;
  std::span<const Tensor> inputs_;
  const Tensor weights_;
  std::vector<Var> constants_;
  double least_ = kFloor;
  double rounding_;  // of the sum, some steps of computing on
};

std::string name_of(const Part& part) {
  if (part.size() == 1) return fmt::format("element {}", part.begin);
  return fmt::format("elements {} to {} along random signs", part.begin, part.end - 1);
}

}  // namespace

double gradient_check_tolerance() { return kDouble ? 1e-6 : 2e-2; }

GradientCheck gradient_check(const Differentiable& f, std::span<const Tensor> inputs, double tolerance,
                             Index most_parts) {
  Tensor weights;
  const std::vector<Tensor> gradients = backward_gradients(f, inputs, &weights);
  Numeric differences(f, inputs, weights);
  GradientCheck check;
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    const std::vector<Part> parts = parts_of(inputs[input].size(), most_parts);
    double largest = 0, worst = 0;
    for (const Part& part : parts) largest = std::max(largest, norm(gradients[input], part));
    for (const Part& part : parts) {
      const double floor =
          std::max({0.01 * largest, differences.least(), part.size() > 1 ? norm(gradients[input], part) : 0});
      const double analytic = derivative(gradients[input], part);
      const Numeric::Estimate numeric = differences.derivative(input, part, 0.1 * tolerance, floor);
      const double scale = std::max({std::abs(analytic), std::abs(numeric.value), floor});
      double error = std::abs(analytic - numeric.value) / scale;
      // Rounding proves no mistake, where the gradient is zero; nor does, in float, a difference that is in doubt.
      const double unknown = 2 * (kDouble ? numeric.rounding : numeric.doubt) / scale;
      if (error > tolerance && std::isfinite(unknown)) error = std::max(0.0, error - unknown);
      if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
      worst = std::max(worst, error);
      if (error > check.worst_error || check.worst_place.empty()) {
        check.worst_error = error;
        check.worst_place =
            fmt::format("input {}, {}: backward {}, numeric {}", input, name_of(part), analytic, numeric.value);
      }
    }
    if (worst > tolerance) check.wrong.push_back(fmt::format("input {}", input));
  }
  check.passed = check.wrong.empty();
  return check;
}

}  // namespace weft

// Proof of a backward pass: its gradients against finite differences. For the library's tests and for users' own ops.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "weft/autograd/tape.h"

namespace weft {

/// What a gradient check found.
struct GradientCheck {
  /// The worst difference over all elements of all inputs: |backward - numeric| / max(|backward|, |numeric|, floor),
  /// with floor a hundredth of the largest gradient of that input (or 1e-6 if larger; in float a hundredth of the
  /// result's root mean square, but of 1 at most, if larger), so that rounding of tiny elements does not count as an
  /// error. An error beyond the tolerance is less by the rounding of the numeric gradient, in float by all that this is
  /// in doubt by.
  double worst_error = 0;
  std::string worst_place;         ///< "input 1, element 17: backward 0.25, numeric 0.5"
  bool passed = false;             ///< worst_error <= the tolerance
  std::vector<std::string> wrong;  ///< the inputs with an error beyond the tolerance: "input 1"
};

/// A function of some inputs, made of ops; its result may have any shape.
using Differentiable = std::function<Var(std::span<const Var>)>;

/// The tolerance that gradient_check uses unless told: 1e-6 in double, 2e-2 in float, where finite differences are
/// rough. Build with WEFT_DOUBLE for a proof.
double gradient_check_tolerance();

/// Compares the gradients of a random-weighted sum of f(inputs) with central differences, for every element of every
/// input. An input of more than `most_parts` elements is cut into that many parts instead, each of which is moved as one,
/// its elements up or down as chance has it: a sample for large inputs, in which no element is left out. `f` must be a pure
/// function of its inputs.
GradientCheck gradient_check(const Differentiable& f, std::span<const Tensor> inputs,
                             double tolerance = gradient_check_tolerance(),
                             Index most_parts = std::numeric_limits<Index>::max());

}  // namespace weft

// Proof of a layer or a whole model: the gradients of its parameters and inputs against finite differences.
#pragma once

#include <functional>
#include <span>

#include "weft/autograd/gradient_check.h"
#include "weft/nn/context.h"
#include "weft/nn/parameters.h"

namespace weft {

/// A function of some inputs, made of modules; its result may have any shape.
using DifferentiableModule = std::function<Var(const Context&, std::span<const Var>)>;

/// Does what gradient_check does for ops, for every element of every input and of every parameter in `parameters` (or for
/// `most_parts` parts of each), which has the values of before afterwards, and no gradients. worst_place begins with the
/// parameter's name, or "input 0"; `wrong` has such names.
GradientCheck gradient_check(const DifferentiableModule& f, std::span<const Tensor> inputs, ParameterSet& parameters,
                             double tolerance = gradient_check_tolerance(),
                             Index most_parts = std::numeric_limits<Index>::max());

}  // namespace weft

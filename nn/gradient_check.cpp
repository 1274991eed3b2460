#include "weft/nn/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace weft {
namespace {

Context on_tape(Tape* tape) {
  Context context;
  context.tape = tape;
  return context;
}

/// f(inputs) as a function of one parameter.
Var as_function_of(const ParameterEntry& entry, const Var& parameter, const DifferentiableModule& f,
                   std::span<const Var> inputs, ParameterSet& parameters) {
  const std::span<const real> values = parameter.value().values();
  std::copy(values.begin(), values.end(), parameters.value(entry).data());
  if (parameter.tape() == nullptr) return f(on_tape(nullptr), inputs);
  // A module passes gradients to its parameters, not to `parameter`; so it runs on a tape of its own, within one record.
  const auto inner = std::make_shared<Tape>();
  const Var y = f(on_tape(inner.get()), inputs);
  if (y.tape() == nullptr) return y;
  return parameter.tape()->record(
      "module", y.value(), [=, &parameters, slot = parameter.slot()](const Tensor& dy, Tape& tape) {
        parameters.reset_gradients();
        inner->backward(inner->record("gradient", Tensor::zeros({1}),
                                      [=](const Tensor&, Tape& within) { within.give(y.slot(), dy); }));
        parameters.complete_gradients();
        tape.give(slot, parameters.gradient(entry).clone());
      });
}

}  // namespace

GradientCheck gradient_check(const DifferentiableModule& f, std::span<const Tensor> inputs, ParameterSet& parameters,
                             double tolerance, Index most_parts) {
  GradientCheck worst;
  worst.passed = true;
  std::vector<std::string> wrong;
  const auto check = [&](const std::string& name, const Differentiable& function, const Tensor& at) {
    GradientCheck one = gradient_check(function, {&at, 1}, tolerance, most_parts);
    one.worst_place.replace(0, one.worst_place.find(','), name);  // it called its only input "input 0"
    if (!one.passed) wrong.push_back(name);
    if (worst.worst_place.empty() || one.worst_error > worst.worst_error) worst = one;
  };
  std::vector<Var> variables(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto function = [&, i](std::span<const Var> v) {
      variables[i] = v[0];
      return f(on_tape(v[0].tape()), variables);
    };
    check(fmt::format("input {}", i), function, inputs[i]);
    variables[i] = inputs[i];
  }
  const Tensor before = parameters.values().clone();
  for (const ParameterEntry& entry : parameters.entries()) {
    const auto function = [&](std::span<const Var> v) { return as_function_of(entry, v[0], f, variables, parameters); };
    check(entry.name, function, parameters.value(entry).clone());
    std::copy(before.values().begin(), before.values().end(), parameters.values().data());
  }
  parameters.reset_gradients();
  worst.passed = wrong.empty();
  worst.wrong = std::move(wrong);
  return worst;
}

}  // namespace weft

// The check of a layer's backward pass: its gradients against finite differences, in short sentences and in a long one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "weft/nn/gradient_check.h"
#include "weft/nn/layer_checks.h"

namespace weft {
namespace {

constexpr bool kDouble = sizeof(real) == sizeof(double);
constexpr Index kMostElements = 256;  // of a tensor, to compare with finite differences one by one
constexpr Index kParts = 16;          // of each tensor, if one is larger
constexpr Index kLongParts = 8;       // of an input with a long sentence: some rows each

/// The sentences, and in how many parts gradients are compared.
struct Trial {
  std::vector<Index> lengths, memory_lengths;
  Index input_parts, parameter_parts;
  double tolerance;
};

GradientCheck compare(const LayerToCheck& layer, const Trial& how) {
  LayerTrial trial = layer.make();
  ParameterSet none;
  // Where a difference falls on a kink is a matter of the input: a wrong backward pass is wrong with each.
  constexpr std::uint64_t kInputs = 4;
  GradientCheck best;
  for (std::uint64_t seed = 1; seed <= kInputs && !best.passed; ++seed) {
    const LayerBatch batch = layer.batch(how.lengths, how.memory_lengths, seed);
    std::vector<Tensor> inputs{batch.x};
    if (trial.crosses()) inputs.push_back(batch.memory);
    const DifferentiableModule function = [&](const Context& given, std::span<const Var> v) {
      Context context = given;
      context.training = true;
      context.random = kStepRandom;
      const Var memory = !trial.crosses() ? Var() : v.empty() ? Var(batch.memory) : v[1];
      return trial(context, v.empty() ? Var(batch.x) : v[0], batch.rows, memory, batch.memory_rows);
    };
    GradientCheck check = gradient_check(function, inputs, none, how.tolerance, how.input_parts);
    GradientCheck other = gradient_check(function, {}, trial.parameters(), how.tolerance, how.parameter_parts);
    check.wrong.insert(check.wrong.end(), other.wrong.begin(), other.wrong.end());
    check.passed = check.wrong.empty();
    if (other.worst_error > check.worst_error) {
      check.worst_error = other.worst_error;
      check.worst_place = other.worst_place;
    }
    if (seed == 1 || check.passed || check.worst_error < best.worst_error) best = std::move(check);
  }
  return best;
}

}  // namespace

void check_gradients(const LayerToCheck& layer, Finding& finding) {
  constexpr Index kShort = 24;  // parameters for each position are compared one by one if there are no more
  LayerToCheck brief = layer;
  brief.options.max_length = std::min(kShort, layer.options.max_length);
  const bool small = [&] {
    LayerTrial trial = brief.make();
    Index largest = 5 * layer.options.d_model;
    for (const ParameterEntry& entry : trial.parameters().entries()) largest = std::max(largest, entry.shape.size());
    return largest <= kMostElements;
  }();
  // In float a kink of relu leaves only steps so small that they are rough, and large layers have many.
  const double tolerance = kDouble ? gradient_check_tolerance() : small ? 0.05 : 0.1;
  const Index parts = small ? kMostElements : kParts;
  const GradientCheck in_short = compare(brief, {{2, 0, 3}, {3, 1, 2}, parts, parts, tolerance});
  finding.see(in_short.worst_error, tolerance,
              fmt::format("of {}; worst of {}", fmt::join(in_short.wrong, ", "), in_short.worst_place));
  if (!in_short.passed) return;
  // Parameters have been compared already; what a long sentence adds to them shows along one direction.
  const double rough = kDouble ? tolerance : 0.1;
  const GradientCheck in_long = compare(layer, {{kLongSentence, 0, 3}, {3, 1, kLongSentence}, kLongParts, 1, rough});
  finding.see(
      in_long.worst_error, rough,
      fmt::format("with a sentence of {} rows, of {}; worst of {}", std::min(kLongSentence, layer.options.max_length),
                  fmt::join(in_long.wrong, ", "), in_long.worst_place));
}

}  // namespace weft

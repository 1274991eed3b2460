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

/// The first of some inputs that are near to each other, or another of them.
LayerBatch batch_near(const LayerToCheck& layer, const Trial& how, std::uint64_t number) {
  LayerBatch batch = layer.batch(how.lengths, how.memory_lengths, 1);
  if (number == 1) return batch;
  const LayerBatch moved = layer.batch(how.lengths, how.memory_lengths, number, 0.2);
  accumulate(batch.x.size(), moved.x.data(), {batch.x.data(), 1});
  accumulate(batch.memory.size(), moved.memory.data(), {batch.memory.data(), 1});
  return batch;
}

/// A layer in training as a function of one tensor's parts: of the input or parameter of that name.
GradientCheck check_parts(LayerTrial& trial, LayerBatch batch, const std::string& name, const Trial& how) {
  const std::vector<ParameterEntry>& entries = trial.parameters().entries();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.name == name; });
  const bool of_input = entry == entries.end();
  Tensor target = !of_input ? trial.parameters().value(*entry) : name == "input 0" ? batch.x : batch.memory;
  const Tensor before = target.clone(), flat = before.reshaped({before.size()});
  std::vector<Tensor> parts;
  const Index most = of_input ? how.input_parts : how.parameter_parts, count = std::min(before.size(), most);
  for (Index i = 0; i < count; ++i) {
    parts.push_back(flat.row_range(before.size() * i / count, before.size() * (i + 1) / count).clone());
  }
  const Differentiable function = [&](std::span<const Var> given) {
    real* to = target.data();
    std::vector<Slot> slots;
    for (const Var& part : given) {
      to = std::copy_n(part.value().data(), part.value().size(), to);
      slots.push_back(part.slot());
    }
    Context context;
    context.training = true;
    context.random = kStepRandom;
    const Tensor y = trial(context, batch);
    if (given[0].tape() == nullptr) return Var(y);
    return given[0].tape()->record("layer", y, [&, slots](const Tensor& dy, Tape& tape) {
      const LayerPass pass = trial.pass(batch, dy, true, kStepRandom);
      const Tensor all = !of_input           ? pass.gradients.back().view(entry->offset, entry->shape)
                         : name == "input 0" ? pass.gradients[0]
                                             : pass.gradients[1];
      for (std::size_t i = 0, at = 0; i < slots.size(); at += parts[i++].values().size()) {
        tape.give(slots[i], all.view(static_cast<Index>(at), parts[i].shape()));
      }
    });
  };
  GradientCheck check = gradient_check(function, parts, how.tolerance, 1);
  std::copy_n(before.data(), before.size(), target.data());
  return check;
}

/// Whether each part of a tensor is right with one or another of some inputs and parameters that are near to each
/// other: only where a difference falls on a kink changes with them. In float, steps are larger and reach more kinks.
bool outvoted(const LayerToCheck& layer, const Trial& how, const std::string& name) {
  constexpr std::uint64_t kInputs = kDouble ? 4 : 12;
  std::vector<std::string> always_wrong;
  for (std::uint64_t number = 1; number <= kInputs; ++number) {
    LayerTrial trial = layer.make();
    const Tensor values = trial.parameters().values();
    const Tensor moved = random_rows(values.shape(), number, number == 1 ? 0 : 0.1);
    accumulate(values.size(), moved.data(), {Tensor(values).data(), 1});
    const std::vector<std::string> wrong = check_parts(trial, batch_near(layer, how, number), name, how).wrong;
    if (number == 1) always_wrong = wrong;
    std::erase_if(always_wrong,
                  [&](const std::string& part) { return std::find(wrong.begin(), wrong.end(), part) == wrong.end(); });
    if (always_wrong.empty()) return true;
  }
  return false;
}

GradientCheck compare(const LayerToCheck& layer, const Trial& how) {
  LayerTrial trial = layer.make();
  ParameterSet none;
  const LayerBatch batch = batch_near(layer, how, 1);
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
  const GradientCheck other = gradient_check(function, {}, trial.parameters(), how.tolerance, how.parameter_parts);
  check.wrong.insert(check.wrong.end(), other.wrong.begin(), other.wrong.end());
  if (other.worst_error > check.worst_error) {
    check.worst_error = other.worst_error;
    check.worst_place = other.worst_place;
  }
  std::erase_if(check.wrong, [&](const std::string& name) { return outvoted(layer, how, name); });
  check.passed = check.wrong.empty();
  if (check.passed) check.worst_error = std::min(check.worst_error, how.tolerance);  // what was worse was outvoted
  return check;
}

/// Gradients that are there already, as of an x that is used a second time and of parameters of two batches, must be
/// added to: once more, from there on, gives twice as much. Another layer of the kind that has its pass between forward
/// and backward, as others of a model have, must change nothing.
void check_added(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  const LayerBatch batch = layer.batch({3, kLongSentence, 1}, {2, 1, kLongSentence}, 5);
  const Tensor gradient = random_rows(batch.x.shape(), 6);
  const LayerPass once = trial.pass(batch, gradient, true, kStepRandom);
  const LayerPass again = trial.pass(batch, gradient, true, kStepRandom, &once);
  for (std::size_t i = 0; i < once.gradients.size(); ++i) {
    const Tensor twice = once.gradients[i].clone();
    accumulate(twice.size(), twice.data(), {Tensor(twice).data(), 1});
    finding.see(difference(again.gradients[i], twice), kRounding,
                fmt::format("of {}, where there is a gradient already: Dst::beta 1 asks to add to it",
                            i + 1 == once.gradients.size() ? "the parameters"
                            : i == 0                       ? "input 0"
                                                           : "input 1"));
  }
  LayerTrial other = layer.make_other();
  const LayerBatch of_other = layer.batch({3, kLongSentence, 1}, {2, 1, kLongSentence}, 7);  // in the same sizes
  const LayerPass beside = trial.pass(batch, gradient, true, kStepRandom, nullptr,
                                      [&] { other.pass(of_other, gradient, true, kStepRandom); });
  finding.see(difference(beside, once), kRounding,
              "with another layer of the kind run between forward and backward: keep what backward reads in what is "
              "given to Tape::record, not where layers share it");
}

}  // namespace

void check_gradients(const LayerToCheck& layer, Finding& finding) {
  check_added(layer, finding);
  if (!finding.passed) return;
  constexpr Index kShort = 24;  // parameters for each position are compared one by one if there are no more
  LayerToCheck brief = layer;
  brief.options.max_length = std::min(kShort, layer.options.max_length);
  const bool small = [&] {
    LayerTrial trial = brief.make();
    Index largest = 13 * layer.options.d_model;
    for (const ParameterEntry& entry : trial.parameters().entries()) largest = std::max(largest, entry.shape.size());
    return largest <= kMostElements;
  }();
  // In float a kink of relu leaves only steps so small that they are rough, and large layers have many.
  const double tolerance = kDouble ? gradient_check_tolerance() : 0.05;
  const Index parts = small ? kMostElements : kParts;
  const auto see = [&](const LayerToCheck& of, const Trial& how, const std::string& where) {
    const GradientCheck check = compare(of, how);
    const std::string worst_of = check.worst_place.substr(0, check.worst_place.find(','));
    const bool told = std::find(check.wrong.begin(), check.wrong.end(), worst_of) != check.wrong.end();
    finding.see(check.worst_error, how.tolerance,
                fmt::format("{}of {}{}{}", where, fmt::join(check.wrong, ", "), told ? "; worst of " : "",
                            told ? check.worst_place : ""));  // what was worst may have been outvoted
    return check.passed;
  };
  if (!see(brief, {{2, 0, 3}, {3, 1, 2}, parts, parts, tolerance}, "")) return;
  const LayerToCheck plain = brief.without_dropout();
  const LayerOptions& o = layer.options;
  const bool drops = o.dropout > 0 || o.attention_dropout > 0 || o.activation_dropout > 0;
  if (drops && !see(plain, {{2, 0, 3}, {3, 1, 2}, kLongParts, kLongParts, tolerance}, "without dropout, ")) return;
  // Parameters have been compared; what other lengths, full tiles among them, add to them shows along one direction.
  if (!see(brief, {{1, 4, 8}, {8, 1, 4}, parts, 1, tolerance}, "with sentences of 1, 4 and 8 rows, ")) return;
  const Trial longest{{kLongSentence, 0, 3, 64}, {3, 1, 64, kLongSentence}, kLongParts, 1, kDouble ? tolerance : 0.1};
  const std::string rows =
      fmt::format("with a sentence of {} rows, ", std::min(kLongSentence, layer.options.max_length));
  if (see(layer, longest, rows) && drops) see(layer.without_dropout(), longest, "without dropout, " + rows);
}

}  // namespace weft

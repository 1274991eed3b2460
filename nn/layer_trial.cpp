#include "weft/nn/layer_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/core/clock.h"
#include "weft/core/error.h"

namespace weft {
namespace {

constexpr std::size_t kPlaceLetters = 5;

}  // namespace

Unchanged::Unchanged(const char* what, const Tensor& given)
    : what_(what), given_(given), before_(given.defined() ? given.clone() : Tensor()) {}

void Unchanged::require() const {
  if (!before_.defined() || before_.size() == 0) return;
  if (std::memcmp(before_.data(), given_.data(), before_.values().size_bytes()) == 0) return;
  throw Error(fmt::format("[layer] {} was changed in place; compute into a new tensor, as others read it too", what_));
}

Tensor random_rows(const Shape& shape, std::uint64_t seed, double scale) {
  Random random(seed, random_site("layer_trial"));
  Tensor x(shape);
  for (real& value : x.values()) value = static_cast<real>(scale * (2 * random.uniform() - 1));
  return x;
}

LayerBatch random_batch(Index d_model, const std::vector<Index>& lengths, const std::vector<Index>& memory_lengths,
                        std::uint64_t seed, double scale) {
  LayerBatch batch;
  batch.rows = Ragged::of_lengths(lengths);
  batch.memory_rows = Ragged::of_lengths(memory_lengths);
  batch.x = random_rows({batch.rows.rows(), d_model}, 2 * seed, scale);
  batch.memory = random_rows({batch.memory_rows.rows(), d_model}, 2 * seed + 1, scale);
  return batch;
}

LayerBatch together(const std::vector<LayerBatch>& sentences, const std::vector<std::size_t>& order) {
  LayerBatch all;
  for (const std::size_t s : order) {
    all.rows.append(sentences[s].rows.rows());
    all.memory_rows.append(sentences[s].memory_rows.rows());
  }
  all.x = Tensor({all.rows.rows(), sentences[0].x.cols()});
  all.memory = Tensor({all.memory_rows.rows(), sentences[0].x.cols()});
  real *x = all.x.data(), *memory = all.memory.data();
  for (const std::size_t s : order) {
    x = std::copy_n(sentences[s].x.data(), sentences[s].x.size(), x);
    memory = std::copy_n(sentences[s].memory.data(), sentences[s].memory.size(), memory);
  }
  return all;
}

LayerTrial::LayerTrial(const Registry& registry, std::string_view slot, std::string_view name, LayerOptions options,
                       std::uint64_t seed, std::string_view place)
    : parameters_(seed), root_(parameters_) {
  options.registry = &registry;
  if (Registry::takes_cross_layer(slot)) {
    cross_ = registry.make_cross_layer(slot, name, root_, place, options);
  } else {
    layer_ = registry.make_layer(slot, name, root_, place, options);
  }
  values_ = parameters_.values();
  for (const ParameterEntry& entry : parameters_.entries()) {
    Tensor values = parameters_.value(entry);
    Random random(seed, random_site(entry.name) + 1);
    for (real& value : values.values()) value += static_cast<real>(0.4 * random.uniform() - 0.2);
  }
}

std::string_view LayerTrial::member(std::string_view parameter) {
  return parameter.substr(std::min(parameter.size(), kPlaceLetters + 1));
}

Var LayerTrial::operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                           const Ragged& memory_rows) const {
  const Unchanged same_x("x", x.value()), same_memory("memory", memory.value());
  const Var y = run(context, x, rows, memory, memory_rows);
  same_x.require();
  same_memory.require();
  return y;
}

Var LayerTrial::run(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                    const Ragged& memory_rows) const {
  const Var y = crosses() ? (*cross_)(context, x, rows, memory, memory_rows) : (*layer_)(context, x, rows);
  if (!y.defined() || y.shape() != x.shape()) {
    throw ShapeError(fmt::format("[layer] the result {} must have the shape of x {}",
                                 y.defined() ? to_string(y.shape()) : "(an undefined Var)", to_string(x.shape())));
  }
  return y;
}

Tensor LayerTrial::operator()(const Context& context, const LayerBatch& batch) const {
  const Unchanged same_parameters = parameters_unchanged();
  const Tensor y = (*this)(context, batch.x, batch.rows, batch.memory, batch.memory_rows).value();
  same_parameters.require();
  return y;
}

LayerPass LayerTrial::pass(const LayerBatch& batch, const Tensor& gradient, bool training, const RandomStream& random,
                           const LayerPass* before, const std::function<void()>& between) {
  Context context;
  context.tape = &tape_;
  context.training = training;
  context.random = random;
  tape_.clear();
  if (before == nullptr) parameters_.reset_gradients();
  LayerPass pass;
  {
    const Var x = tape_.variable(batch.x), memory = crosses() ? tape_.variable(batch.memory) : Var();
    const Unchanged same_x("x", batch.x), same_memory("memory", batch.memory), same_values = parameters_unchanged();
    const double began = now();
    const Var y = run(context, x, batch.rows, memory, batch.memory_rows);
    const double forward_done = now();
    pass.result = y.value();
    const Unchanged same_result("the result", pass.result), same_gradient("the gradient of the result", gradient);
    if (between) between();
    const double backward_began = now();
    if (y.tape() != nullptr) {
      tape_.backward(tape_.record("check", Tensor::zeros({1}), [&](const Tensor&, Tape& t) {
        if (before != nullptr) t.give(x.slot(), before->gradients[0]);
        if (before != nullptr && crosses()) t.give(memory.slot(), before->gradients[1]);
        t.give(y.slot(), gradient);
      }));
    }
    pass.forward_seconds = forward_done - began;
    pass.backward_seconds = now() - backward_began;
    same_x.require();
    same_memory.require();
    same_values.require();
    same_result.require();
    same_gradient.require();
    pass.gradients.push_back(tape_.gradient(x).clone());
    if (crosses()) pass.gradients.push_back(tape_.gradient(memory).clone());
  }
  parameters_.complete_gradients();
  pass.gradients.push_back(parameters_.gradients().clone());
  tape_.clear();
  return pass;
}

}  // namespace weft

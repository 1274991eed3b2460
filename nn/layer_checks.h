// The single checks of layer_check.h, each on one side of a model, where `causal` in the options says which. A check tells
// what it sees to a Finding and throws only what the layer throws.
#pragma once

#include <string>
#include <string_view>

#include "weft/nn/layer_trial.h"

namespace weft {

/// A layer by its name, and what it is made with.
struct LayerToCheck {
  const Registry& registry;
  std::string_view slot, name;
  LayerOptions options;

  LayerTrial make(std::uint64_t seed = 1) const { return LayerTrial(registry, slot, name, options, seed); }
};

/// What a check has seen so far: figures, each of which must not be more than is allowed.
struct Finding {
  double worst = 0,
         allowed = 0;  ///< the worst figure, and what was allowed of the first that was too large, else the last
  Index count = 0;     ///< of figures
  bool passed = true;
  std::string place;    ///< of the first that was too large
  std::string instead;  ///< a result to show in the place of the usual one

  void see(double figure, double most, const std::string& where);
};

/// The difference that is allowed where sums may be added in another order.
inline constexpr double kRounding = sizeof(real) == sizeof(double) ? 1e-12 : 1e-5;

/// 0 for the same bits; else the largest difference as a share of the largest value, infinity for NaN.
double difference(const Tensor& a, const Tensor& b);

/// Inputs and parameters against finite differences, with dropout.
void check_gradients(const LayerToCheck& layer, Finding& finding);
/// Each sentence alone and among others, in several orders.
void check_batches(const LayerToCheck& layer, Finding& finding);
/// Later rows changed, and cut off.
void check_causality(const LayerToCheck& layer, Finding& finding);
/// Position by position, while hypotheses grow in number, swap and end, against whole prefixes.
void check_decoding(const LayerToCheck& layer, Finding& finding);
/// Forward and backward with 1, 2, 3 and 8 threads.
void check_threads(const LayerToCheck& layer, Finding& finding);
/// The result recorded and not.
void check_tape(const LayerToCheck& layer, Finding& finding);
/// Trained a little, written to a file, read into another that was made otherwise.
void check_saving(const LayerToCheck& layer, Finding& finding);
/// Training twice with one random address; translating with two.
void check_randomness(const LayerToCheck& layer, Finding& finding);
/// How often a third step goes to the heap for tensors.
void check_memory(const LayerToCheck& layer, Finding& finding);
/// Whether results and gradients are finite for empty, single, many, zero and large rows.
void check_odd_input(const LayerToCheck& layer, Finding& finding);

}  // namespace weft

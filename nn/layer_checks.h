// The single checks of layer_check.h, each on one side of a model, where `causal` in the options says which. A check tells
// what it sees to a Finding and throws what the layer throws, or CheckError.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/core/error.h"
#include "weft/nn/layer_trial.h"

namespace weft {

/// A layer by its name, and what it is made with.
struct LayerToCheck {
  const Registry& registry;
  std::string_view slot, name;
  LayerOptions options;

  LayerTrial make(std::uint64_t seed = 1) const { return LayerTrial(registry, slot, name, options, seed); }
  /// A batch of random rows with sentences of these lengths, none longer than the layer's max_length.
  LayerBatch batch(std::vector<Index> lengths, std::vector<Index> memory_lengths, std::uint64_t seed,
                   double scale = 1) const;
};

/// A check that could not be done, by no fault of the layer: a file could not be written.
class CheckError : public Error {
 public:
  using Error::Error;
};

/// Rows of the long sentence that all checks have: more than any window, ring or tile of up to 64 rows holds.
inline constexpr Index kLongSentence = 70;
/// Rows of the longest sentence that odd input has; what grows with their square would take too long with more.
inline constexpr Index kLongestSentence = 2048;

/// Whether a check that goes through a sentence of `rows` rows stops at this one: at each of the first eight, at the last
/// and the first of every eight after them, where tiles end, and at the last two of the sentence.
inline bool stops_at(Index row, Index rows) { return row < 8 || row % 8 == 7 || row % 8 == 0 || row + 2 >= rows; }

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
/// The largest difference of the results and of each gradient.
double difference(const LayerPass& a, const LayerPass& b);

/// The random numbers of a step of training.
inline constexpr RandomStream kStepRandom{3, 12};

/// Inputs and parameters against finite differences, with dropout: each element in short sentences, parts in a long one.
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

// The single checks of layer_check.h, each on one side of a model, where `causal` in the options says which. A check tells
// what it sees to a Finding and throws what the layer throws, or CheckError.
#pragma once

#include <functional>
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
  /// Another layer of the kind, as a model has it beside the first: under another name.
  LayerTrial make_other() const { return LayerTrial(registry, slot, name, options, 2, "other"); }
  /// A batch of random rows with sentences of these lengths, none longer than the layer's max_length.
  LayerBatch batch(std::vector<Index> lengths, std::vector<Index> memory_lengths, std::uint64_t seed,
                   double scale = 1) const;
  /// A batch that is cut into several tiles.
  LayerBatch large_batch(std::uint64_t seed) const;
  /// The same with all its probabilities of dropout 0: in training, no row depends on where in a batch it is.
  LayerToCheck without_dropout() const;
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
         allowed = 0;  ///< the worst figure, and what was allowed of the first that was too large, else the most
  Index count = 0;     ///< of figures
  bool passed = true;
  std::string place;    ///< of the first that was too large
  std::string instead;  ///< a result to show in the place of the usual one

  void see(double figure, double most, const std::string& where);
  /// Sees all that another has seen.
  void add(const Finding& other);
};

/// The difference that is allowed where sums may be added in another order.
inline constexpr double kRounding = sizeof(real) == sizeof(double) ? 1e-12 : 1e-5;

/// 0 for the same bits; else the difference as a share of the values, both as root mean squares, as a norm of few
/// numbers magnifies the rounding of single ones; infinity for NaN.
double difference(const Tensor& a, const Tensor& b);
/// The largest difference of the results and of each gradient.
double difference(const LayerPass& a, const LayerPass& b);

/// The layer's result for each row, decoded position by position with the rows of `batch`, all sentences side by side;
/// each has `hypotheses` that are the same, of which the last is told. For a layer that is incremental.
Tensor decoded(const LayerTrial& trial, const LayerBatch& batch, Index hypotheses = 1);

/// Sees what `compare(seed, finding)` sees with the first of some inputs that passes, else with the one that is least
/// wrong: rounding that a norm of few numbers magnifies is a matter of the input, and what is wrong is wrong with each.
void see_with_any_input(Finding& finding, const std::function<void(std::uint64_t, Finding&)>& compare);

/// The random numbers of a step of training.
inline constexpr RandomStream kStepRandom{3, 12};

/// Inputs and parameters against finite differences, with dropout: each element in short sentences, parts in a long
/// one and without dropout; added to gradients that are there already, and with another layer run in between.
void check_gradients(const LayerToCheck& layer, Finding& finding);
/// Each sentence alone and among others, in several orders, and in a large batch with all gradients; in training and
/// while decoding too.
void check_batches(const LayerToCheck& layer, Finding& finding);
/// Later rows changed, and cut off; in training too.
void check_causality(const LayerToCheck& layer, Finding& finding);
/// Position by position, while hypotheses grow in number, swap and end, against whole prefixes; several texts, one
/// after the other, with another layer of the kind beside it and after a change of the parameters.
void check_decoding(const LayerToCheck& layer, Finding& finding);
/// Forward, backward and decoding with 1, 2, 3 and 8 threads.
void check_threads(const LayerToCheck& layer, Finding& finding);
/// The result recorded and not, with and without attention weights.
void check_tape(const LayerToCheck& layer, Finding& finding);
/// Trained a little, written to a file, read into another that was made otherwise.
void check_saving(const LayerToCheck& layer, Finding& finding);
/// Training twice with one random address; translating with two.
void check_randomness(const LayerToCheck& layer, Finding& finding);
/// How often a third step of training, pass without a tape and translation go to the heap for tensors, and what they
/// keep.
void check_memory(const LayerToCheck& layer, Finding& finding);
/// Whether results and gradients are finite for empty, single, many, zero and large rows.
void check_odd_input(const LayerToCheck& layer, Finding& finding);

}  // namespace weft

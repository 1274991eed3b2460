// What is said of a training run whose numbers stopped being of use. Texts name the step, the first bad number and what
// made it, the sentences, and only what this configuration can change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/autograd/anomaly.h"
#include "weft/core/error.h"
#include "weft/data/corpus.h"
#include "weft/nn/parameters.h"
#include "weft/train/config.h"

namespace weft {

/// Updates in a row that the policy "skip" leaves out at most.
inline constexpr Index kMostSkipped = 10;
/// How often the policy "rollback" goes back in one run at most.
inline constexpr Index kMostRollbacks = 5;
/// What each time multiplies the learning rate by.
inline constexpr double kRollbackFactor = 0.5;
/// In the run folder, with the policy "rollback", after a run was stopped between two saves that it would have made
/// anyway: the last of these.
inline constexpr const char* kRollbackFile = "rollback.safetensors";

/// Sentences of a corpus, which another epoch may have replaced meanwhile.
struct BatchSentences {
  std::shared_ptr<const Corpus> corpus;
  std::vector<Index> sentences;
};

/// Training cannot go on as it does.
class DivergenceError : public Error {
 public:
  /// `headline` is the number with its value, as "the loss is nan"; `cause`, if it is not empty, a line on what came first.
  DivergenceError(Index at_step, const std::string& headline, const std::string& cause)
      : Error("step " + std::to_string(at_step) + ": " + headline + (cause.empty() ? "" : "\n  " + cause)) {}

  bool skippable = false;               ///< whether all is well without that update
  Index batch = -1;                     ///< the batch of the update where it began; -1 if it is in none
  Index sentence = -1;                  ///< of that batch, the one it began in; -1 if that is not known
  std::vector<BatchSentences> batches;  ///< those of the update
};

/// An element of the flat buffer of all parameters in words: "[3, 17] of parameter NAME [20, 30]".
std::string element_name(Index element, ParameterSet& parameters);

/// A line on an anomaly. `parameters` give the names.
std::string describe(const Anomaly& anomaly, ParameterSet& parameters);

/// What helps against a loss or numbers that grow too large, as a sentence of what this configuration can change.
std::string divergence_advice(const Config& config);

}  // namespace weft

// How much memory a run will take, found before its first update, and whether there is so much. What parameters and all that
// has their size take is arithmetic, done before they are allocated; what lives beside them for a time is measured on made-up
// sentences, a part of the largest batch first, so that layers of other projects count as well. Of a layer whose memory
// grows faster than the rows of a batch, the part says too little: the whole batch, run where that seems to fit, shows it.
#pragma once

#include <algorithm>

#include "weft/core/machine_memory.h"
#include "weft/train/evaluate.h"
#include "weft/train/training_step.h"

namespace weft {

/// What the process takes beside tensors and the training text: the program, its libraries and buffers. Measured.
inline constexpr Index kProgramBytes = Index{32} << 20;

/// How large a batch is, as far as memory goes.
struct BatchSize {
  Index sentences = 0, source_rows = 0, target_rows = 0;

  Index rows() const { return source_rows + target_rows; }
};

/// Memory in bytes as a line over the rows of a batch, source and target together.
struct MemoryLine {
  double fixed = 0, row = 0;

  double at(Index rows) const { return fixed + row * static_cast<double>(rows); }
};

/// What the translations of a validation take in tensors, beside what there is.
struct DecodingForecast {
  Index bytes = 0;
  Index rows = 0;  ///< source rows of the batch that takes most
};

/// The memory in bytes that a run will take.
struct MemoryForecast {
  Index process = 0;       ///< what there is beside the state already: the program and the training text's ids
  Index text = 0;          ///< what is made of the training text for an epoch, beside what there is
  Index state = 0;         ///< parameters, gradients, the optimizer's state, the moving average
  Index held = 0;          ///< what there is of the state already: parameters and gradients
  MemoryLine update;       ///< the most beside these in an update
  Index largest_rows = 0;  ///< rows of the largest batch
  Index longest_rows = 0;  ///< rows of the longest pair, which no batch_tokens divides
  DecodingForecast decoding;
  TranslationBytes validation;  ///< what its translations take beside tensors
  Index validation_lines = 0;   ///< that are translated

  /// The most beside the state.
  double work() const { return std::max(update.at(largest_rows), static_cast<double>(decoding.bytes)); }
  /// What is to come of all this, in bytes of the process.
  Index to_come() const;
  /// The most bytes of tensors beside the state that a room leaves: to_come() the other way round.
  double room_for_work(Index room) const;
};

/// What parameters, gradients, optimizer and moving average of a model take, by arithmetic.
Index state_bytes(const TrainingConfig& training, const OptimizerConfig& optimizer, Index parameters);

/// What a text takes as ids.
Index corpus_bytes(const Corpus& corpus);

/// What is made of a training text for an epoch: its plan, and with data.subword_sampling all of its tokens.
Index text_bytes(const Corpus& train, const DataConfig& config);

/// The size of a batch of these sentences.
BatchSize size_of(const Corpus& corpus, const std::vector<Index>& sentences);

/// The largest of these batches, of which there is at least one: the one of most rows.
const std::vector<Index>& largest_batch(const Corpus& corpus, const std::vector<std::vector<Index>>& batches);

/// What an update takes at its peak beside what there is, from an eighth and a quarter of a batch of that size. The
/// model's gradients are forgotten.
MemoryLine forecast_update(TranslationModel& model, TrainingStep& step, const BatchSize& batch);

/// What the greedy translation of the first `count` lines takes, kLinesAtOnce at a time, by a model that ends no sentence
/// by itself: from a sixteenth and an eighth of the lines that take most. The model's parameters must be allocated.
DecodingForecast forecast_decoding(const TranslationModel& model, const EncodedText& lines, Index count);

/// What a run will take: the largest batch of its first epoch, and the translations of its validations. If all of that
/// fits into the room, the largest batch is run to be exact.
MemoryForecast forecast_memory(TranslationModel& model, const Corpus& train, const Corpus& valid,
                               const MemoryRoom& room);

/// What the process will have at its peak: what it had before the forecast, when the parameters were allocated, what is to
/// come of text, state and validation, the work, and what the pool keeps of blocks that fit nothing at the time.
Index expected_peak(const MemoryForecast& forecast, const ResidentMemory& before);

}  // namespace weft

// How much memory a run will take, found before its first update, and whether there is so much. What parameters and all
// that has their size take is arithmetic, done before they are allocated; what lives beside them for a time is measured
// on made-up sentences, small parts of the largest batch first, so that layers of other projects count as well. Of a layer
// whose memory grows faster than the rows of a batch, the part says too little: the whole batch, run where that seems
// to fit, shows it.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "weft/core/machine_memory.h"
#include "weft/train/batch_size.h"
#include "weft/train/evaluate.h"
#include "weft/train/memory_line.h"
#include "weft/train/memory_text.h"
#include "weft/train/training_step.h"

namespace weft {

/// What the process takes beside tensors and the training text: the program, its libraries and buffers. Measured.
inline constexpr Index kProgramBytes = Index{32} << 20;

/// What the batches of a validation take in tensors, beside what there is.
struct ValidationForecast {
  Index bytes = 0;
  Index rows = 0;  ///< of the batch that takes most: of translations, those of the source
};

/// The memory in bytes that a run will take.
struct MemoryForecast {
  Index process = 0;       ///< what there is beside the state already: the program and the training text
  Index text = 0;          ///< what is made of the training text for an epoch, beside what there is
  Index state = 0;         ///< parameters, gradients, the optimizer's state, the moving average
  Index held = 0;          ///< what there is of the state already: parameters and gradients
  MemoryLine update;       ///< the most beside these in an update
  Index largest_rows = 0;  ///< rows of the largest batch
  Index longest_rows = 0;  ///< rows of the longest pair, which no batch_tokens divides
  ValidationForecast loss, decoding;
  TranslationBytes validation;  ///< what its translations take beside tensors
  Index validation_lines = 0;   ///< that are translated

  /// The most beside the state.
  double work() const {
    return std::max(update.at(largest_rows), static_cast<double>(std::max(loss.bytes, decoding.bytes)));
  }
  /// What is to come of all this, in bytes of the process.
  Index to_come() const;
  /// The most bytes of tensors beside the state that a room leaves: to_come() the other way round.
  double room_for_work(Index room) const;
};

/// What parameters, gradients, optimizer and moving average of a model take, by arithmetic.
Index state_bytes(const TrainingConfig& training, const OptimizerConfig& optimizer, Index parameters);

/// The sizes of a run's batches among which is the one whose update takes most: outermost() of those of its first epochs,
/// up to 16, of a text of more than 130,000 pairs fewer, as planning one takes time: of 2 million pairs and more the first.
/// With data.subword_sampling these are the batches of the text as it is and those of a sample of pairs, of which there
/// are enough for several batches, with subwords drawn.
std::vector<BatchSize> training_batches(const TranslationModel& model, const Corpus& train, Index batch_tokens);

/// More than any machine has, in bytes.
inline constexpr double kAnyRoom = 1e18;

/// That of these sizes, of which there is at least one, whose update takes most, by forecast_update() of each. The model's
/// gradients are forgotten.
BatchSize largest_batch(TranslationModel& model, TrainingStep& step, const std::vector<BatchSize>& sizes,
                        double room = kAnyRoom);

/// What an update takes at its peak beside what there is, from an eighth and a quarter of a batch of that size. These are
/// reached from smaller parts: where the next part would not fit into `room` bytes, or memory is out, the line is that of
/// the parts before, and the whole does not fit. The model's gradients are forgotten.
MemoryLine forecast_update(TranslationModel& model, TrainingStep& step, const BatchSize& batch, double room = kAnyRoom);

/// What an update with made-up sentences of that size takes at its peak beside what there is; infinity if memory is out.
/// The model's gradients are forgotten.
double update_peak(TranslationModel& model, TrainingStep& step, const BatchSize& batch);

/// What validations take beside tensors. `references` are the targets of their lines.
TranslationBytes validation_bytes(const TranslationModel& model, const Corpus& valid,
                                  std::span<const std::string> references = {});

/// What evaluate_loss takes, from an eighth and a quarter of the batch that takes most, or less of it as forecast_update()
/// says. The model's parameters must be allocated.
ValidationForecast forecast_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens,
                                 double room = kAnyRoom);

/// What the greedy translation of lines takes, kLinesAtOnce at a time, by a model that ends no sentence by itself: from
/// a sixteenth and an eighth of each of their outermost() batches, by what is read and what is written, or from the whole
/// of small ones, or less as forecast_update() says. The model's parameters must be allocated.
ValidationForecast forecast_decoding(const TranslationModel& model, const EncodedText& lines, double room = kAnyRoom);

/// What a run will take: the largest batch of its epochs, and the losses and translations of its validations. If the
/// update seems to fit into the room, the largest batch is run to be exact. `valid_lines` are the
/// validation text; lines that `valid` lacks, as a side is too long for the model, are translated as well.
MemoryForecast forecast_memory(TranslationModel& model, const Corpus& train, const Corpus& valid,
                               const ParallelText& valid_lines, const MemoryRoom& room);

/// What the process has, once the pool and the heap have given back what is free: part of what is to come will lie there.
ResidentMemory settled_memory();

/// What the process will have at its peak: what settled_memory() said before the forecast, when the parameters were
/// allocated, what is to come of text, state and validation, the work, and what the pool keeps of blocks that fit
/// nothing at the time.
Index expected_peak(const MemoryForecast& forecast, const ResidentMemory& before);

}  // namespace weft

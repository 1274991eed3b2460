// What updates take in memory, as the pool counts it.
#pragma once

#include <vector>

#include "weft/core/memory.h"
#include "weft/train/training_step.h"

namespace weft {

/// The most tensor memory in bytes at one time in updates with each of these batches, with all that is held meanwhile.
inline Index peak_memory(TranslationModel& model, TrainingStep& step, const Corpus& corpus,
                         const std::vector<std::vector<Index>>& batches) {
  reset_peak_memory();
  for (const auto& sentences : batches) {
    step.add_gradients(make_batch(corpus, sentences), 1, 0, 0);
    model.parameters().reset_gradients();
  }
  return memory_statistics().peak_bytes;
}

}  // namespace weft

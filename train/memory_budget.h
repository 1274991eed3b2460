// The batch that fits into a given memory. What is counted is tensor memory, as
// the pool hands it out to one thread, not what the system says of the process,
// so that the answer depends on the model, the text and the budget alone.
#pragma once

#include <optional>
#include <string_view>

#include "weft/train/training_step.h"

namespace weft {

/// Reads a size such as "2GiB", "800 MB" or "1.5G": a number above 0 and a unit
/// of 1000 (KB, MB, GB, TB) or of 1024 (KiB, MiB, GiB, TiB, and K, M, G, T);
/// nothing if the text is not one.
std::optional<Index> parse_bytes(std::string_view text);

/// The tensor memory in bytes at the peak of an update on the largest of these
/// batches, with all that is held meanwhile. The model's gradients are
/// forgotten.
Index peak_memory(TranslationModel& model, TrainingStep& step, const Corpus& corpus,
                  const std::vector<std::vector<Index>>& batches, Index update);

/// The largest training.batch_tokens, to a fiftieth, with which an update
/// stays within `budget` bytes: parameters, gradients, optimizer, the moving
/// average if there is one, and activations. Throws ConfigError if no batch
/// does.
Index batch_tokens_within(TranslationModel& model, const Corpus& corpus, Index budget);

}  // namespace weft

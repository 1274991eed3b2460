// The batch that fits into a given memory. What the process takes is found from the tensors, as the pool hands them out
// to one thread, and not from what the system says of it, so that the answer depends on the model, the text and the
// budget alone.
#pragma once

#include <optional>
#include <string_view>

#include "weft/train/memory_forecast.h"

namespace weft {

/// Reads a size such as "2GiB", "800 MB" or "1.5G": a number above 0 and a unit
/// of 1000 (KB, MB, GB, TB) or of 1024 (KiB, MiB, GiB, TiB, and K, M, G, T);
/// nothing if the text is not one.
std::optional<Index> parse_bytes(std::string_view text);

/// The tensor memory in bytes with which the process stays within `budget` bytes when it trains that model on a text,
/// in batches of `batch_tokens`, with the validations of another, whose targets are the `references`.
Index tensors_within(TranslationModel& model, const Corpus& corpus, const Corpus& valid, Index batch_tokens,
                     Index budget, std::span<const std::string> references = {});

/// The largest training.batch_tokens, to a fiftieth, with which the process stays within `budget` bytes in an update:
/// parameters, gradients, optimizer, the moving average if there is one, activations, what the pool keeps, the training
/// text and the program. Throws ConfigError if no batch does.
Index batch_tokens_within(TranslationModel& model, const Corpus& corpus, const Corpus& valid, Index budget,
                          std::span<const std::string> references = {});

}  // namespace weft

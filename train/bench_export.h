// The work of `weft bench` for other programs: what they need to do the same and to see that it is the same.
#pragma once

#include <filesystem>

#include "weft/train/bench_decode.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Writes model.safetensors, a checkpoint, and work.json: config, sizes, the batches of make_bench_batches, and the loss of
/// each without dropout, as the mean over its target tokens. Throws DataError if the folder cannot be made.
void export_bench_step(TranslationModel& model, const std::filesystem::path& folder);

/// Writes model.safetensors and decode.json: config, sizes, and the sources and outputs of bench_decode_text for beams 1
/// and 4.
void export_bench_decode(TranslationModel& model, const DecodeBenchOptions& options,
                         const std::filesystem::path& folder);

}  // namespace weft

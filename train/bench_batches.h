// The synthetic batches of `weft bench`: what they hold depends on the configuration alone, so that other programs can be
// given the same work.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "weft/data/batch.h"
#include "weft/train/config.h"

namespace weft {

/// The most tokens, </s> included, that a sentence has under "realistic" or "uniform:N"; nothing for any other text.
std::optional<Index> longest_bench_sentence(std::string_view lengths);

/// The batches of one round of training: one of equal sentences, or several of similar lengths each, from short to long.
/// Words are drawn evenly from the vocabulary. Throws ConfigError if the sentences are too long for the model.
std::vector<Batch> make_bench_batches(const Config& config);

/// The length of all sentences of `weft bench decode`: that of "uniform:N", or the mean of the realistic ones.
Index bench_decode_length(const Config& config);

}  // namespace weft

// What a run says of itself at its beginning and its end.
#pragma once

#include <string>
#include <vector>

#include "weft/train/trainer.h"

namespace weft {

/// Where subwords that were learned are fewer than the configuration asks for: a line for each side.
std::vector<std::string> small_vocabulary_warnings(const TranslationModel& model);

/// Why a run ended before its last step, to go after the step at which it did; empty if it made all.
std::string end_reason(TrainingEnd end, const TrainingState& state, const TrainingConfig& training);

/// What was done about numbers that were not finite and losses that exploded; empty if nothing was.
std::string repair_text(const TrainingState& state);

}  // namespace weft

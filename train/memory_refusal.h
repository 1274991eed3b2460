// Runs that do not fit into the memory there is, refused with a key to lower and a value that would do.
#pragma once

#include <string>

#include "weft/nn/registry.h"
#include "weft/train/memory_forecast.h"

namespace weft {

/// Throws ConfigError, with a model.d_model that would do, unless the state of a model fits into training.memory and into
/// the room. Allocates no parameters.
void require_room_for_model(TranslationModel& model, const Registry& registry, const MemoryRoom& room = memory_room());

/// Which key to lower to what, in words, where even the longest pair by itself does not fit into the room: `least` is the
/// forecast of a run in batches of that pair. A smaller model.d_model takes at most in proportion: of the state, and of
/// what an update takes for no row in particular.
std::string mend_of_least(const MemoryForecast& least, const Config& config, Index room);

/// Throws ConfigError, with the key to lower and a value that would do, if the forecast is more than there is room for, or
/// a validation's translations more than training.memory.
void require_room(const MemoryForecast& forecast, const Config& config, const MemoryRoom& room);

}  // namespace weft

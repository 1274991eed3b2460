// Averages of checkpoints of one model: the mean of each parameter, computed in double. The average of equal checkpoints is
// that checkpoint, bit by bit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/train/checkpoint.h"

namespace weft {

/// What parts two models so that they have no mean: shape, the way to cut text, vocabularies, parameters; empty for models
/// that are alike.
std::string model_difference(TranslationModel& one, TranslationModel& other);

/// The average of the checkpoints, at least one; its configuration, vocabularies and history are those of the last. Throws
/// CheckpointError if one cannot be read, or if they are not of one model and one way to cut text.
Checkpoint average_checkpoints(const std::vector<std::filesystem::path>& paths, const Registry& registry);

/// The checkpoints that a run has kept of its best (or else its last) `count` validations, the worst (the first) of them
/// first. If one is gone or of another step, as the run goes on, the folder is read again, a few times. Throws
/// CheckpointError if it holds no run, ConfigError if there are not so many validations, the run did not keep them, or a
/// file stays gone or of another step than its validation's.
std::vector<std::filesystem::path> validation_checkpoints(const std::filesystem::path& run, bool best, Index count,
                                                          const Registry& registry);

/// The average of those checkpoints, and their paths. Each is that of its validation when it is loaded, also of a run that
/// goes on meanwhile. Throws as both.
struct RunAverage {
  Checkpoint checkpoint;
  std::vector<std::filesystem::path> paths;
};
RunAverage average_run(const std::filesystem::path& run, bool best, Index count, const Registry& registry);

}  // namespace weft

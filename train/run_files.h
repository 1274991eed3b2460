// The files that a run is made of, told by hashes, so that a run does not go on with others. What a checkpoint remembers is
// a number for each, in the order of run_files(); their names are in its configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/train/config.h"

namespace weft {

/// The files of training text, validation text and subword models that a configuration names.
std::vector<std::string> run_files(const DataConfig& config);

/// A hash of each of these files; 0 for one that is not there, or is no regular file and can be read only once.
std::vector<std::uint64_t> run_file_hashes(const DataConfig& config);

/// Throws DataError with the names of the files that are not as they were when `before` was taken; of a hash of 0, and where
/// `before` is empty, nothing is known.
void require_same_files(const DataConfig& config, std::span<const std::uint64_t> before, const std::string& folder);

}  // namespace weft

// What a run is made of, its configuration and files, so that it does not go on with others. Of the files a checkpoint
// remembers a hash each, in the order of run_files(); their names are in its configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/train/config.h"

namespace weft {

/// The keys that differ, of those that matter, between a run made with `before` and one that is to go on with `now`.
std::vector<std::string> run_differences(const Config& before, Config now);

/// Throws ConfigError with the keys that differ unless a run in `folder` made with `before` may go on with `now`.
void require_same_config(const Config& before, const Config& now, const std::string& folder);

/// The files of training text, validation text and subword models that a configuration names.
std::vector<std::string> run_files(const DataConfig& config);

/// These, and the files of the test text.
std::vector<std::string> all_files(const DataConfig& config);

/// A hash of each of the run_files(); 0 for one that is not there, or is no regular file and can be read only once.
/// Throws Error if the system cannot say which, DataError if one cannot be read.
std::vector<std::uint64_t> run_file_hashes(const DataConfig& config);

/// Throws DataError with the names of the files that are not as they were when `before` was taken, as the run in
/// `folder` began; of a hash of 0, and where `before` is empty, nothing is known.
void require_same_files(const DataConfig& config, std::span<const std::uint64_t> before, const std::string& folder);

/// Does the same where `before` was taken before the files were read, and they have been by now.
void require_files_unchanged(const DataConfig& config, std::span<const std::uint64_t> before);

}  // namespace weft

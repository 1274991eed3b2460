// The training text as token ids, read from the files or from the cache that an earlier run left.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "weft/train/progress.h"
#include "weft/train/run_data.h"

namespace weft {

/// The training text as token ids, and where the cache of it is.
struct TrainingText {
  EncodedCorpus encoded;
  std::filesystem::path cache;  ///< the file to keep it in; empty if none is to be kept
  std::uint64_t key = 0;        ///< stands for all that the ids depend on
  bool cached = false;          ///< whether it was read from there
  std::string problem;          ///< why a file that is there could not be used; empty if it could, or there is none
};

/// Whether it is the name of a cache: keep_training_text removes such files.
bool is_cache_name(std::string_view name);

/// Where a run keeps its training text as ids; empty for nowhere.
std::filesystem::path cache_folder(const DataConfig& config, const std::filesystem::path& run);

/// The training text for a model, from the cache in `folder` if it is there, else from the text; `longest` tokens a side at
/// most. A cache whose tokens, lengths, lines or counts the text cannot have given is not used. Writes nothing. Without a
/// folder, and for a toy task, there is no cache.
TrainingText encode_training_text(const TranslationModel& model, const RunText& text, Index longest,
                                  const std::filesystem::path& folder);

/// Keeps the training text in its cache. Removes what processes left in that folder that were killed while they wrote a
/// cache, and other caches if `alone`. Throws Error if it cannot be written.
void keep_training_text(const TrainingText& text, bool alone);

/// Keeps the training text unless it is already kept, or is not to be. A run does not depend on it: a failure is a line of
/// `progress`.
void keep_cache(const TrainingText& text, const DataConfig& config, Progress& progress);

}  // namespace weft

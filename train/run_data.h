// The text of a run: read from files or made as a toy task, and encoded with the run's vocabularies.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/data/corpus.h"
#include "weft/data/parallel_text.h"
#include "weft/data/vocabulary.h"
#include "weft/train/config.h"
#include "weft/train/translation_model.h"

namespace weft {

/// One split of a config's text: "train", "valid", "test", or an extra test set of a toy task. Throws DataError if the
/// config names no such text.
ParallelText read_split(const DataConfig& config, const std::string& split);

/// Writes the text of the config's toy task into `directory`, unless it names files.
void write_task_text(const DataConfig& config, const std::filesystem::path& directory);

/// The vocabularies of both sides, from the training text.
struct Vocabularies {
  Vocabulary source, target;
};
Vocabularies build_vocabularies(const DataConfig& config, const ParallelText& train);

/// Encodes text for a model; `longest` tokens a side at most.
EncodedCorpus encode_text(const TranslationModel& model, const ParallelText& text, Index longest, const std::string& name);

/// A number that changes when an encoded corpus does.
std::uint64_t content_hash(const Corpus& corpus);

}  // namespace weft

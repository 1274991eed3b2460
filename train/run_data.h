// The text of a run: read from files or made as a toy task, and encoded with the run's vocabularies.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "weft/data/corpus.h"
#include "weft/data/parallel_text.h"
#include "weft/data/vocabulary.h"
#include "weft/train/config.h"
#include "weft/train/translation_model.h"

namespace weft {

/// The text that a config names, split by split. A toy task's text is made once.
class RunText {
 public:
  explicit RunText(const DataConfig& config);

  /// "train", "valid", "test", or an extra test set of a toy task. Throws DataError if there is no such text.
  ParallelText split(const std::string& name) const;
  /// Writes a toy task's text into `directory`; does nothing for files.
  void write_task(const std::filesystem::path& directory) const;

 private:
  const DataConfig& config_;
  std::vector<std::pair<std::string, ParallelText>> task_;  // none for files
};

/// The vocabularies of both sides, from the training text; those of subwords from the models that the config names, where
/// it does. Throws DataError for a model that cannot be read, ConfigError for one of another kind than data.tokenizer.
struct Vocabularies {
  Vocabulary source, target;
};
Vocabularies build_vocabularies(const DataConfig& config, const ParallelText& train);

/// Encodes text for a model; `longest` tokens a side at most.
EncodedCorpus encode_text(const TranslationModel& model, const ParallelText& text, Index longest,
                          const std::string& name);

/// Encodes the pairs `lines` of a text anew for each epoch, with subwords drawn at random. What comes of a pair depends on
/// its text, the seed, the epoch and its line alone. A side that gets more than `longest` tokens has those of encode_text.
class EpochEncoder {
 public:
  /// `model` and `text` must outlive it.
  EpochEncoder(const TranslationModel& model, const ParallelText& text, std::vector<Index> lines, Index longest)
      : model_(&model), text_(&text), lines_(std::move(lines)), longest_(longest) {}

  Corpus operator()(Index epoch) const;

 private:
  const TranslationModel* model_;
  const ParallelText* text_;
  std::vector<Index> lines_;
  Index longest_;
};

/// A number that changes when an encoded corpus does.
std::uint64_t content_hash(const Corpus& corpus);

}  // namespace weft

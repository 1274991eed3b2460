// The text of a run: read from files or made as a toy task, and encoded with the run's vocabularies. The training text is
// read in blocks and never held whole; which pairs each part has depends on the files and the configuration alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/threads.h"
#include "weft/data/corpus.h"
#include "weft/data/hold_out.h"
#include "weft/data/parallel_reader.h"
#include "weft/data/parallel_text.h"
#include "weft/data/vocabulary.h"
#include "weft/train/config.h"
#include "weft/train/task_text.h"
#include "weft/train/translation_model.h"

namespace weft {

/// The files of a split as the configuration names them; none if it names none. Throws DataError if it names one side of
/// two, ConfigError for another split than train, valid and test.
std::vector<TextFiles> text_files(const DataConfig& config, const std::string& split);

/// Hands a text out in blocks, to the same effect each time.
using TextBlocks = FunctionRef<ShortLines(FunctionRef<void(const ParallelText& block)>)>;

/// The text that a config names, split by split. A toy task's text is made once.
class RunText {
 public:
  /// Reads the training text through if pairs of it are to be held out. Throws DataError as read_blocks and hold_out do.
  explicit RunText(const DataConfig& config);

  bool is_task() const { return !task_.empty(); }
  /// The text of a toy task; none if the text is in files.
  const TaskText& task() const { return task_; }
  /// "train", "valid", "test", or an extra test set of a toy task. Throws DataError if there is no such text.
  ParallelText split(const std::string& name) const;
  /// Hands out the training text in blocks, without the pairs that are held out. Throws DataError as read_blocks does, and
  /// for a file that can be read only once.
  ShortLines read_train(FunctionRef<void(const ParallelText& block)> take) const;
  /// Where pairs of the training text, counted from 0 as read_train hands them out, stand: "FILE:LINE", for two files that
  /// of the source. Reads the files again, so that nothing need be kept for it; a toy task's are the files of
  /// a `run`. Throws DataError as read_train does, for a pair that there is not, and where the files are not as they were
  /// when their run_file_hashes() were taken.
  std::vector<std::string> train_places(std::span<const Index> pairs, const std::filesystem::path& run,
                                        std::span<const std::uint64_t> file_hashes) const;
  /// A number that stands for the pairs that are held out; 0 if none are.
  std::uint64_t held_out_hash() const;
  /// A number that changes when the files of the training text do, or their columns.
  std::uint64_t train_hash() const;

 private:
  Part part_of(std::size_t pair) const;
  ShortLines read_all(FunctionRef<void(const ParallelText&)> take) const;

  const DataConfig config_;
  TaskText task_;              // none for files
  std::vector<Part> parts_;    // of each pair of the training files; none if all are kTrain
  ParallelText valid_, test_;  // what is held out
};

/// The vocabularies of both sides, from the training text; those of subwords from the models that the config names, where
/// it does. Throws DataError for a model that cannot be read, ConfigError for one of another kind than data.tokenizer.
struct Vocabularies {
  Vocabulary source, target;
};
Vocabularies build_vocabularies(const DataConfig& config, TextBlocks train);
Vocabularies build_vocabularies(const DataConfig& config, const ParallelText& train);

/// Encodes text for a model; `longest` tokens a side at most. Throws DataError if no pair is left, unless all were too long
/// or blank and `may_lose_all`.
EncodedCorpus encode_text(const TranslationModel& model, const ParallelText& text, Index longest,
                          const std::string& name, bool may_lose_all = false);

/// A number that changes when an encoded corpus does.
std::uint64_t content_hash(const Corpus& corpus);

}  // namespace weft

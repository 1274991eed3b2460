#include "weft/train/training_text.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/data/corpus_cache.h"
#include "weft/data/text_hash.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCacheSuffix = ".corpus";

/// A hash of what decides, beside the files and the vocabularies, which tokens there are.
std::uint64_t rules_hash(const DataConfig& config) {
  std::uint64_t hash = text_hash(config.tokenizer);
  for (const Index number :
       {config.lowercase ? Index{1} : Index{0}, config.hold_out_valid, config.hold_out_test, config.seed}) {
    hash = mix_hash(hash, static_cast<std::uint64_t>(number));
  }
  return hash;
}

}  // namespace

TrainingText encode_training_text(const TranslationModel& model, const RunText& text, Index longest,
                                  const fs::path& folder) {
  TrainingText result;
  std::uint64_t files = 0;
  if (!folder.empty() && !text.is_task()) {
    files = text.train_hash();
    result.key = mix_hash(files, rules_hash(model.config().data));
    for (const Vocabulary* vocabulary : {&model.source_vocabulary(), &model.target_vocabulary()}) {
      result.key = mix_hash(result.key, vocabulary->content_hash());
    }
    result.key = mix_hash(result.key, static_cast<std::uint64_t>(longest));
    result.cache = folder / fmt::format("{:016x}{}", result.key, kCacheSuffix);
    LoadedCorpus loaded = load_corpus(result.cache, result.key);
    result.problem = std::move(loaded.problem);
    if (loaded.corpus) {
      result.encoded = std::move(*loaded.corpus);
      result.cached = true;
      return result;
    }
  }
  CorpusEncoder encoder({model.source_tokenizer(), model.source_vocabulary()},
                        {model.target_tokenizer(), model.target_vocabulary()}, longest, "the training text");
  const ShortLines short_lines = text.read_train([&](const ParallelText& block) { encoder.add(block); });
  result.encoded = encoder.finish();
  result.encoded.report.short_lines = short_lines;
  if (result.key != 0 && text.train_hash() != files) {
    throw DataError("the training text changed while it was read; begin again once nothing writes to it");
  }
  return result;
}

void keep_training_text(const TrainingText& text, bool alone) {
  std::error_code error;
  const fs::path folder = text.cache.parent_path();
  fs::create_directories(folder, error);  // a failure shows when the file is written
  save_corpus(text.cache, text.key, text.encoded);
  if (!alone) return;
  for (const std::string& name : names_in(folder)) {
    const fs::path other = folder / name;
    if (other.extension() == kCacheSuffix && other != text.cache) fs::remove(other, error);
  }
  remove_leftovers(text.cache);
}

}  // namespace weft

#include "weft/train/training_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/core/temporary.h"
#include "weft/data/corpus_cache.h"
#include "weft/data/text_hash.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCacheSuffix = ".corpus";

std::string cache_name(std::uint64_t key) { return fmt::format("{:016x}{}", key, kCacheSuffix); }

/// A hash of what decides, beside the files and the vocabularies, which tokens there are.
std::uint64_t rules_hash(const DataConfig& config) {
  std::uint64_t hash = text_hash(config.tokenizer);
  for (const Index number :
       {config.lowercase ? Index{1} : Index{0}, config.hold_out_valid, config.hold_out_test, config.seed}) {
    hash = mix_hash(hash, static_cast<std::uint64_t>(number));
  }
  return hash;
}

/// Whether one side of a cached corpus is one that encoding for this vocabulary can have given.
bool may_be(const EncodedText& text, const Vocabulary& vocabulary, Index longest, Index tokens, Index unknown) {
  for (Index i = 0; i < text.sentences(); ++i) {
    if (text.length(i) < 1 || text.length(i) > longest) return false;
  }
  return std::all_of(text.tokens.begin(), text.tokens.end(),
                     [&](TokenId id) { return id >= 0 && id < vocabulary.size(); }) &&
         static_cast<Index>(text.tokens.size()) == tokens &&
         std::count(text.tokens.begin(), text.tokens.end(), kUnknown) == unknown;
}

/// Whether a cached corpus is one that a CorpusEncoder can have given: its file is whole, but another program may have
/// written it.
bool may_be(const EncodedCorpus& all, const TranslationModel& model, Index longest) {
  const CorpusReport& report = all.report;
  const std::vector<Index>& line = all.corpus.line;
  return report.kept > 0 && report.blank >= 0 && report.too_long >= 0 && report.short_lines.count >= 0 &&
         report.kept <= report.pairs && report.blank <= report.pairs - report.kept &&
         report.too_long == report.pairs - report.kept - report.blank &&
         std::adjacent_find(line.begin(), line.end(), std::greater_equal<>()) == line.end() && line.front() >= 0 &&
         line.back() < report.pairs &&
         may_be(all.corpus.source, model.source_vocabulary(), longest, report.source_tokens, report.source_unknown) &&
         may_be(all.corpus.target, model.target_vocabulary(), longest, report.target_tokens, report.target_unknown);
}

}  // namespace

bool is_cache_name(std::string_view name) {
  constexpr std::size_t kDigits = 16;
  return name.size() == kDigits + kCacheSuffix.size() && name.ends_with(kCacheSuffix) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

fs::path cache_folder(const DataConfig& config, const fs::path& run) {
  if (config.cache == "none") return {};
  return config.cache.empty() ? run / "cache" : fs::path(config.cache);
}

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
    result.cache = folder / cache_name(result.key);
    LoadedCorpus loaded = load_corpus(result.cache, result.key);
    result.problem = std::move(loaded.problem);
    if (loaded.corpus && !may_be(*loaded.corpus, model, longest)) {
      result.problem = "what it holds does not fit the text, its vocabularies or its own counts";
    } else if (loaded.corpus) {
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
  remove_dead_temporaries(folder, [](std::string_view name) { return is_cache_name(name); });
  save_corpus(text.cache, text.key, text.encoded);
  if (!alone || fs::is_symlink(folder, error)) return;  // to a folder that other runs may share
  for (const std::string& name : names_in(folder)) {
    if (is_cache_name(name) && name != text.cache.filename()) fs::remove(folder / name, error);
  }
  remove_leftovers(text.cache);  // on a file system without locks they are still there
}

void keep_cache(const TrainingText& text, const DataConfig& config, Progress& progress) {
  if (!text.problem.empty()) {
    progress.line(fmt::format("{} cannot be used ({}); made anew", text.cache.string(), text.problem));
  }
  if (text.cache.empty() || text.cached) return;
  try {
    keep_training_text(text, config.cache.empty());
  } catch (const Error& error) {
    progress.line(fmt::format("going on without a cache of the training text: {}", error.what()));
  }
}

}  // namespace weft

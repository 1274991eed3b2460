#include "weft/train/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"
#include "weft/data/corpus_cache.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_trainer.h"
#include "weft/data/text_hash.h"
#include "weft/data/toy.h"
#include "weft/train/config_rules.h"
#include "weft/train/config_table.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCacheSuffix = ".corpus";

void append(const ParallelText& block, ParallelText& text) {
  text.source.insert(text.source.end(), block.source.begin(), block.source.end());
  text.target.insert(text.target.end(), block.target.begin(), block.target.end());
}

/// Mixes the bytes of a file into a hash.
std::uint64_t file_hash(const std::string& name, std::uint64_t hash) {
  const InputFile file(name);
  std::string bytes;
  constexpr std::uint64_t kPiece = 1 << 20;
  for (std::uint64_t at = 0; at < file.size(); at += bytes.size()) {
    bytes.resize(static_cast<std::size_t>(std::min(kPiece, file.size() - at)));
    file.read_at(at, std::as_writable_bytes(std::span(bytes)));
    hash = text_hash(bytes, hash);
  }
  return mix_hash(hash, file.size());
}

/// A hash of all that makes text into tokens: every key of the section but those that name texts, whose bytes count.
std::uint64_t rules_hash(const Config& config) {
  std::uint64_t hash = 0;
  for (const ConfigKey& key : config_table().keys) {
    if (key.section != "data" || key.name == "cache") continue;
    if (key.name.starts_with("train") || key.name.starts_with("valid") || key.name.starts_with("test")) continue;
    hash = text_hash(show_value(key.get(config)), text_hash(key.name, hash));
  }
  return hash;
}

using Lines = std::span<const std::string>;

/// A vocabulary of subwords: those of a file, or learned from texts if there is none.
Vocabulary subword_vocabulary(const DataConfig& config, const std::string& file, std::span<const Lines> texts) {
  std::string bytes = file.empty()
                          ? train_subwords(texts, {config.tokenizer, config.max_vocabulary, config.byte_fallback,
                                                   config.character_coverage, config.lowercase})
                          : read_file(file);
  auto model = SubwordModel::load(std::move(bytes), file.empty() ? "the new subword model" : file);
  if (model->kind() != config.tokenizer) {
    throw ConfigError(fmt::format("{}: a subword model of the kind {}, but data.tokenizer is \"{}\"; make them agree",
                                  file, model->kind(), config.tokenizer));
  }
  return Vocabulary::from_subwords(std::move(model));
}

/// Learns from the whole text at once, as SentencePiece does.
Vocabularies subword_vocabularies(const DataConfig& config, TextBlocks train) {
  ParallelText text;
  const bool learns =
      config.subword_model.empty() &&
      (config.shared_vocabulary || config.source_subword_model.empty() || config.target_subword_model.empty());
  if (learns) train([&](const ParallelText& block) { append(block, text); });
  const Lines both[] = {text.source, text.target};
  if (config.shared_vocabulary) {
    const Vocabulary shared = subword_vocabulary(config, config.subword_model, both);
    return {shared, shared};
  }
  return {subword_vocabulary(config, config.source_subword_model, std::span(both).first(1)),
          subword_vocabulary(config, config.target_subword_model, std::span(both).last(1))};
}

/// The tokens of one side of a pair in one epoch.
std::vector<TokenId> sampled_ids(const Tokenizer& tokenizer, const Vocabulary& vocabulary, const std::string& line,
                                 double strength, std::uint64_t key, Index number, Index longest) {
  Random random(key, static_cast<std::uint64_t>(number));
  std::vector<std::string> tokens = tokenizer.sample(line, strength, random);
  if (static_cast<Index>(tokens.size()) > longest) tokens = tokenizer.split(line);
  return vocabulary.ids(tokens);
}

}  // namespace

std::vector<TextFiles> text_files(const DataConfig& config, const std::string& split) {
  const auto named = [&](const std::vector<TextFiles>& list, const std::string& source,
                         const std::string& target) -> std::vector<TextFiles> {
    if (!list.empty() || (source.empty() && target.empty())) return list;
    if (source.empty() || target.empty()) {
      throw DataError(fmt::format("data.{0}_{1} is set without data.{0}_{2}; set both", split,
                                  source.empty() ? "target" : "source", source.empty() ? "source" : "target"));
    }
    return {TextFiles{source, target, "", 1, 2}};
  };
  if (split == "train") return named(config.train, config.train_source, config.train_target);
  if (split == "valid") return named(config.valid, config.valid_source, config.valid_target);
  if (split == "test") return named(config.test, config.test_source, config.test_target);
  throw ConfigError(fmt::format("no split \"{}\"; there are train, valid, test", split));
}

RunText::RunText(const DataConfig& config) : config_(config) {
  if (!config.task.empty()) {
    task_ = make_toy(config.task, config.pairs > 0 ? std::optional<Index>(config.pairs) : std::nullopt,
                     static_cast<std::uint64_t>(config.seed));
  } else if (config.hold_out_valid + config.hold_out_test > 0) {
    std::vector<FoldedPair> pairs;
    read_all([&](const ParallelText& block) { fold_pairs(block, pairs); });
    parts_ = hold_out(pairs, config.hold_out_valid, config.hold_out_test, static_cast<std::uint64_t>(config.seed));
  }
}

bool RunText::has(const std::string& split) const {
  if (is_task()) return true;
  const Index held_out = split == "valid" ? config_.hold_out_valid : split == "test" ? config_.hold_out_test : 0;
  return held_out > 0 || !text_files(config_, split).empty();
}

ParallelText RunText::split(const std::string& name) const {
  std::string known;
  for (const auto& [task_split, text] : task_) {
    if (task_split == name) return text;
    known += (known.empty() ? "" : ", ") + task_split;
  }
  if (is_task()) throw DataError(fmt::format("no split \"{}\"; the task {} has {}", name, config_.task, known));
  if (name == "valid" && config_.hold_out_valid > 0) return held_out(Part::kValid);
  if (name == "test" && config_.hold_out_test > 0) return held_out(Part::kTest);
  const auto files = text_files(config_, name);
  if (files.empty()) {
    throw DataError(
        fmt::format("no {0} text: set data.{0}_source and data.{0}_target, or give --source and --reference", name));
  }
  ParallelText text;
  const auto take = [&](const ParallelText& block) { append(block, text); };
  if (name == "train") {
    read_train(take);
  } else {
    read_blocks(files, take);
  }
  return text;
}

ShortLines RunText::read_train(FunctionRef<void(const ParallelText& block)> take) const {
  if (is_task()) {
    take(split("train"));
    return {};
  }
  if (parts_.empty()) return read_all(take);
  std::size_t pair = 0;
  return read_all([&](const ParallelText& block) {
    ParallelText kept;
    for (std::size_t i = 0; i < block.source.size(); ++i, ++pair) {
      if (part_of(pair) != Part::kTrain) continue;
      kept.source.push_back(block.source[i]);
      kept.target.push_back(block.target[i]);
    }
    if (!kept.source.empty()) take(kept);
  });
}

ShortLines RunText::read_all(FunctionRef<void(const ParallelText&)> take) const {
  const auto texts = text_files(config_, "train");
  for (const TextFiles& files : texts) {
    for (const std::string& name : files.names()) {
      std::error_code error;
      if (fs::is_other(name, error)) {
        throw DataError(
            fmt::format("{}: is not a regular file, but the training text is read more than once; copy it to "
                        "one",
                        name));
      }
    }
  }
  return read_blocks(texts, take);
}

Part RunText::part_of(std::size_t pair) const {
  if (pair < parts_.size()) return parts_[pair];
  throw DataError("the training text has grown while it was being read; let nothing else write to it");
}

ParallelText RunText::held_out(Part part) const {
  ParallelText text;
  std::size_t pair = 0;
  read_all([&](const ParallelText& block) {
    for (std::size_t i = 0; i < block.source.size(); ++i, ++pair) {
      if (part_of(pair) != part) continue;
      text.source.push_back(block.source[i]);
      text.target.push_back(block.target[i]);
    }
  });
  return text;
}

std::uint64_t RunText::train_hash() const {
  std::uint64_t hash = 0;
  for (const TextFiles& files : text_files(config_, "train")) {
    for (const std::string& name : files.names()) hash = file_hash(name, hash);
    if (files.tsv.empty()) continue;
    hash = mix_hash(mix_hash(hash, static_cast<std::uint64_t>(files.source_column)),
                    static_cast<std::uint64_t>(files.target_column));
  }
  return hash;
}

void RunText::write_task(const std::filesystem::path& directory) const {
  if (!task_.empty()) write_toy(task_, directory);
}

Vocabularies build_vocabularies(const DataConfig& config, TextBlocks train) {
  if (uses_subwords(config.tokenizer)) return subword_vocabularies(config, train);
  const auto tokenizer = make_tokenizer(config.tokenizer, config.lowercase);
  const VocabularyOptions options{config.min_count, config.max_vocabulary};
  TokenCounter source, target;
  train([&](const ParallelText& block) {
    count_tokens(block.source, *tokenizer, source);
    count_tokens(block.target, *tokenizer, config.shared_vocabulary ? source : target);
  });
  Vocabulary first = Vocabulary::build(source, options);
  Vocabulary second = config.shared_vocabulary ? first : Vocabulary::build(target, options);
  return {std::move(first), std::move(second)};
}

Vocabularies build_vocabularies(const DataConfig& config, const ParallelText& train) {
  return build_vocabularies(config, [&](FunctionRef<void(const ParallelText&)> take) {
    take(train);
    return ShortLines{};
  });
}

EncodedCorpus encode_text(const TranslationModel& model, const ParallelText& text, Index longest,
                          const std::string& name) {
  return encode_corpus(text, {model.source_tokenizer(), model.source_vocabulary()},
                       {model.target_tokenizer(), model.target_vocabulary()}, longest, name);
}

TrainingText encode_training_text(const TranslationModel& model, const RunText& text, Index longest,
                                  const fs::path& folder) {
  TrainingText result;
  if (!folder.empty() && !text.is_task()) {
    result.key = mix_hash(text.train_hash(), rules_hash(model.config()));
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
  return result;
}

void keep_training_text(const TrainingText& text, bool alone) {
  std::error_code error;
  const fs::path folder = text.cache.parent_path();
  fs::create_directories(folder, error);  // a failure shows when the file is written
  save_corpus(text.cache, text.key, text.encoded);
  if (!alone) return;
  std::vector<fs::path> others;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    if (i->path().extension() == kCacheSuffix && i->path() != text.cache) others.push_back(i->path());
  }
  for (const fs::path& other : others) fs::remove(other, error);
  remove_leftovers(text.cache);
}

Corpus EpochEncoder::operator()(Index epoch) const {
  constexpr Index kTile = 1024, kTiles = 64;  // pairs that one thread takes at a time, and tiles in flight
  const Config& config = model_->config();
  const auto key = [&](std::uint64_t site) {
    const auto words = philox({static_cast<std::uint32_t>(site), static_cast<std::uint32_t>(site >> 32),
                               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
                              static_cast<std::uint64_t>(config.training.seed));
    return words[0] | std::uint64_t{words[1]} << 32;
  };
  const std::uint64_t source_key = key(random_site("source subwords")),
                      target_key = key(random_site("target subwords"));
  const double strength = config.data.subword_sampling;
  Corpus corpus;
  const auto count = static_cast<Index>(lines_.size());
  for (Index first = 0; first < count; first += kTile * kTiles) {
    std::vector<std::vector<TokenId>> source(static_cast<std::size_t>(std::min(count - first, kTile * kTiles)));
    std::vector<std::vector<TokenId>> target(source.size());
    parallel_for(static_cast<Index>(source.size()), kTile, [&](Index begin, Index end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const Index number = lines_[static_cast<std::size_t>(first) + i];
        const auto line = static_cast<std::size_t>(number);
        source[i] = sampled_ids(model_->source_tokenizer(), model_->source_vocabulary(), text_->source[line], strength,
                                source_key, number, longest_);
        target[i] = sampled_ids(model_->target_tokenizer(), model_->target_vocabulary(), text_->target[line], strength,
                                target_key, number, longest_);
      }
    });
    for (std::size_t i = 0; i < source.size(); ++i) {
      corpus.source.append(source[i]);
      corpus.target.append(target[i]);
    }
  }
  corpus.line = lines_;
  return corpus;
}

std::uint64_t content_hash(const Corpus& corpus) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over whole numbers
  const auto add = [&](std::uint64_t number) { hash = (hash ^ number) * 0x100000001b3u; };
  for (const EncodedText* text : {&corpus.source, &corpus.target}) {
    for (const TokenId token : text->tokens) add(static_cast<std::uint64_t>(token));
    for (const Index offset : text->rows.offsets()) add(static_cast<std::uint64_t>(offset));
  }
  return hash;
}

}  // namespace weft

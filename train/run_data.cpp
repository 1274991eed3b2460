#include "weft/train/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>

#include "weft/core/error.h"
#include "weft/data/file_hash.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_trainer.h"
#include "weft/data/text_hash.h"
#include "weft/data/toy.h"
#include "weft/train/run_files.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

void append(const ParallelText& block, ParallelText& text) {
  text.source.insert(text.source.end(), block.source.begin(), block.source.end());
  text.target.insert(text.target.end(), block.target.begin(), block.target.end());
}

using Lines = std::span<const std::string>;

/// A vocabulary of subwords: those of a file, or learned from texts if there is none.
Vocabulary subword_vocabulary(const DataConfig& config, const std::string& file, std::span<const Lines> texts) {
  auto model = file.empty() ? SubwordModel::load(
                                  train_subwords(texts, {config.tokenizer, config.max_vocabulary, config.byte_fallback,
                                                         config.character_coverage, config.lowercase}),
                                  "the new subword model")
                            : SubwordModel::load_file(file);
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
    std::size_t pair = 0;
    read_all([&](const ParallelText& block) {
      for (std::size_t i = 0; i < block.source.size(); ++i, ++pair) {
        const Part part = part_of(pair);
        if (part == Part::kTrain) continue;
        ParallelText& text = part == Part::kValid ? valid_ : test_;
        text.source.push_back(block.source[i]);
        text.target.push_back(block.target[i]);
      }
    });
  }
}

ParallelText RunText::split(const std::string& name) const {
  std::string known;
  for (const auto& [task_split, text] : task_) {
    if (task_split == name) return text;
    known += (known.empty() ? "" : ", ") + task_split;
  }
  if (is_task()) throw DataError(fmt::format("no split \"{}\"; the task {} has {}", name, config_.task, known));
  if (name == "valid" && config_.hold_out_valid > 0) return valid_;
  if (name == "test" && config_.hold_out_test > 0) return test_;
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

std::vector<std::string> RunText::train_places(std::span<const Index> pairs, const fs::path& run,
                                               std::span<const std::uint64_t> file_hashes) const {
  std::vector<std::string> places(pairs.size());
  std::size_t found = 0;
  const auto name = [&](Index pair, const std::string& file, Index line) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i] != pair) continue;
      places[i] = fmt::format("{}:{}", file, line);
      ++found;
    }
  };
  if (is_task()) {
    for (const Index pair : pairs) name(pair, (run / kTaskFolder / "train.src").string(), pair + 1);
    return places;
  }
  std::size_t read = 0;  // of all pairs, those held out too
  Index pair = 0;
  for (const TextFiles& files : text_files(config_, "train")) {
    PairReader reader(files);
    using Found = PairReader::Found;
    for (Found line = reader.next(); line == Found::kPair || line == Found::kTooFewColumns; line = reader.next()) {
      if (found == pairs.size()) break;
      if (line == Found::kTooFewColumns || (!parts_.empty() && part_of(read++) != Part::kTrain)) continue;
      name(pair++, files.names().front(), reader.line());
    }
    if (found == pairs.size()) break;
  }
  if (found < pairs.size()) {
    throw DataError("the training text has shrunk since it was read; let nothing else write to it");
  }
  require_files_unchanged(config_, file_hashes);  // now: what changed while it was read counts too
  return places;
}

std::uint64_t RunText::held_out_hash() const {
  std::uint64_t hash = 0;
  for (const ParallelText* text : {&valid_, &test_}) {
    for (const auto* lines : {&text->source, &text->target}) {
      for (const std::string& line : *lines) hash = text_hash(line, hash);
    }
  }
  return hash;
}

std::uint64_t RunText::train_hash() const {
  std::uint64_t hash = 0;
  for (const TextFiles& files : text_files(config_, "train")) {
    for (const std::string& name : files.names()) hash = file_hash(name, hash);
    if (files.tsv.empty()) continue;
    hash = text_hash(files.tsv, hash);  // which the report of a text names
    hash = mix_hash(mix_hash(hash, static_cast<std::uint64_t>(files.source_column)),
                    static_cast<std::uint64_t>(files.target_column));
  }
  return hash;
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
                          const std::string& name, bool may_lose_all) {
  return encode_corpus(text, {model.source_tokenizer(), model.source_vocabulary()},
                       {model.target_tokenizer(), model.target_vocabulary()}, longest, name, may_lose_all);
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

#include "weft/train/run_data.h"

#include <fmt/format.h>

#include <optional>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/data/toy.h"

namespace weft {
namespace {

auto make_task_text(const DataConfig& config) {
  return make_toy(config.task, config.pairs > 0 ? std::optional<Index>(config.pairs) : std::nullopt,
                  static_cast<std::uint64_t>(config.seed));
}

}  // namespace

ParallelText read_split(const DataConfig& config, const std::string& split) {
  std::string known;
  if (!config.task.empty()) {
    for (auto& [name, text] : make_task_text(config)) {
      if (name == split) return std::move(text);
      known += (known.empty() ? "" : ", ") + name;
    }
    throw DataError(fmt::format("no split \"{}\"; the task {} has {}", split, config.task, known));
  }
  const auto read = [&](const std::string& source, const std::string& target) {
    if (source.empty() || target.empty()) {
      throw DataError(fmt::format("no {0} text: set data.{0}_source and data.{0}_target, or give --source and --reference",
                                  split));
    }
    return read_parallel(source, target);
  };
  if (split == "train") return read(config.train_source, config.train_target);
  if (split == "valid") return read(config.valid_source, config.valid_target);
  if (split == "test") return read(config.test_source, config.test_target);
  throw DataError(fmt::format("no split \"{}\"; there are train, valid, test", split));
}

void write_task_text(const DataConfig& config, const std::filesystem::path& directory) {
  if (!config.task.empty()) write_toy(make_task_text(config), directory);
}

Vocabularies build_vocabularies(const DataConfig& config, const ParallelText& train) {
  const auto tokenizer = make_tokenizer(config.tokenizer, config.lowercase);
  const VocabularyOptions options{config.min_count, config.max_vocabulary};
  TokenCounter source, target;
  count_tokens(train.source, *tokenizer, source);
  count_tokens(train.target, *tokenizer, config.shared_vocabulary ? source : target);
  Vocabulary first = Vocabulary::build(source, options);
  Vocabulary second = config.shared_vocabulary ? first : Vocabulary::build(target, options);
  return {std::move(first), std::move(second)};
}

EncodedCorpus encode_text(const TranslationModel& model, const ParallelText& text, Index longest,
                          const std::string& name) {
  return encode_corpus(text, {model.tokenizer(), model.source_vocabulary()},
                       {model.tokenizer(), model.target_vocabulary()}, longest, name);
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

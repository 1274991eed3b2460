#include "weft/train/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/data/toy.h"
#include "weft/data/utf8.h"

namespace weft {

RunText::RunText(const DataConfig& config) : config_(config) {
  if (config.task.empty()) return;
  task_ = make_toy(config.task, config.pairs > 0 ? std::optional<Index>(config.pairs) : std::nullopt,
                   static_cast<std::uint64_t>(config.seed));
}

ParallelText RunText::split(const std::string& name) const {
  std::string known;
  for (const auto& [task_split, text] : task_) {
    if (task_split == name) return text;
    known += (known.empty() ? "" : ", ") + task_split;
  }
  if (!task_.empty()) throw DataError(fmt::format("no split \"{}\"; the task {} has {}", name, config_.task, known));
  const auto read = [&](const std::string& source, const std::string& target) {
    if (source.empty() || target.empty()) {
      throw DataError(
          fmt::format("no {0} text: set data.{0}_source and data.{0}_target, or give --source and --reference", name));
    }
    ParallelText text = read_parallel(source, target);
    for (const auto& [lines, file] : {std::pair(&text.source, &source), std::pair(&text.target, &target)}) {
      if (std::all_of(lines->begin(), lines->end(), [](const std::string& line) { return is_blank(line); })) {
        throw DataError(fmt::format("{}: has no text; give a file with one sentence a line", *file));
      }
    }
    return text;
  };
  if (name == "train") return read(config_.train_source, config_.train_target);
  if (name == "valid") return read(config_.valid_source, config_.valid_target);
  if (name == "test") return read(config_.test_source, config_.test_target);
  throw DataError(fmt::format("no split \"{}\"; there are train, valid, test", name));
}

void RunText::write_task(const std::filesystem::path& directory) const {
  if (!task_.empty()) write_toy(task_, directory);
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

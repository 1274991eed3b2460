#include "weft/train/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"
#include "weft/data/subword_model.h"
#include "weft/data/subword_trainer.h"
#include "weft/data/text_file.h"
#include "weft/data/toy.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

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

Vocabularies subword_vocabularies(const DataConfig& config, const ParallelText& train) {
  const Lines both[] = {train.source, train.target};
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
  if (uses_subwords(config.tokenizer)) return subword_vocabularies(config, train);
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
  return encode_corpus(text, {model.source_tokenizer(), model.source_vocabulary()},
                       {model.target_tokenizer(), model.target_vocabulary()}, longest, name);
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

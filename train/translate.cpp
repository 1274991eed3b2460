#include "weft/train/translate.h"

#include <algorithm>
#include <numeric>

#include "weft/core/error.h"
#include "weft/data/batch.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

/// A line to translate; blank lines are none.
struct Source {
  std::size_t line;
  std::vector<TokenId> ids;
};

/// The hypotheses of a batch.
std::vector<std::vector<Hypothesis>> hypotheses_of(TransformerSpan models, const Batch& batch,
                                                   const std::vector<Source>& sources,
                                                   const TranslateOptions& options) {
  if (!options.sampling) return search(models, batch.source, batch.source_rows, options.search);
  std::vector<Index> numbers;
  for (const Index sentence : batch.sentences) {
    numbers.push_back(options.first_line + static_cast<Index>(sources[static_cast<std::size_t>(sentence)].line));
  }
  return sample(models, batch.source, batch.source_rows, numbers, options.search, *options.sampling);
}

/// The alignments of a batch's hypotheses where they are wanted, empty elsewhere.
std::vector<std::vector<Alignment>> alignments_of(TransformerSpan models, const Batch& batch,
                                                  const std::vector<Source>& sources,
                                                  const std::vector<std::vector<Hypothesis>>& found, bool all) {
  Corpus pairs;
  std::vector<std::vector<Alignment>> alignments;
  std::vector<Alignment*> places;
  for (const auto& hypotheses : found) alignments.emplace_back(hypotheses.size());
  for (std::size_t s = 0; s < found.size(); ++s) {
    for (std::size_t h = 0; h < found[s].size(); ++h) {
      const std::vector<TokenId>& tokens = found[s][h].tokens;
      if (!all && std::find(tokens.begin(), tokens.end(), kUnknown) == tokens.end()) continue;
      pairs.source.append(sources[static_cast<std::size_t>(batch.sentences[s])].ids);
      pairs.target.append(tokens);
      places.push_back(&alignments[s][h]);
    }
  }
  if (places.empty()) return alignments;
  std::vector<Index> sentences(places.size());
  std::iota(sentences.begin(), sentences.end(), Index{0});
  std::vector<Alignment> aligned = align(models, make_batch(pairs, sentences));
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(aligned[i]);
  return alignments;
}

/// The tokens of a hypothesis, copied from the source where they are unknown.
std::vector<std::string> words_of(const TranslationModel& model, const std::vector<std::string>& source,
                                  const std::vector<TokenId>& ids, const Alignment& alignment) {
  std::vector<std::string> tokens = model.target_vocabulary().tokens(ids);
  if (std::find(ids.begin(), ids.end(), kUnknown) == ids.end()) return tokens;
  const std::vector<Index> sources = best_sources(alignment);
  for (std::size_t j = 0; j < ids.size(); ++j) {
    if (ids[j] != kUnknown) continue;
    tokens[j] = copied_token(model.target_tokenizer(), source[static_cast<std::size_t>(sources[j])]);
  }
  return tokens;
}

}  // namespace

SearchOptions search_options(const DecodingConfig& config) {
  return {.beam = config.beam,
          .n_best = 1,
          .length_penalty = config.length_penalty,
          .max_length_ratio = config.max_length_ratio,
          .max_length_extra = config.max_length_extra,
          .min_length = config.min_length,
          .max_length = config.max_length,
          .no_repeat_ngram = config.no_repeat_ngram,
          .allow_unknown = config.replace_unknown};
}

std::vector<TranslatedLine> translate(ModelSpan models, std::span<const std::string> lines,
                                      const TranslateOptions& options) {
  const TranslationModel& first = *models.front();
  const std::vector<const Transformer*> networks = transformers(models);
  const auto longest = static_cast<std::size_t>(longest_sentence(models));
  std::vector<TranslatedLine> results(lines.size());
  EncodedText text;
  std::vector<Source> sources;  // the sentences of `text`
  for (std::size_t i = 0; i < lines.size(); ++i) {
    TranslatedLine& line = results[i];
    line.source = first.source_tokenizer().split(lines[i]);
    if (line.source.empty() || is_blank(lines[i])) {
      line.source.clear();
      line.translations.push_back({});
      continue;
    }
    if (line.source.size() > longest) {
      line.cut_tokens = static_cast<Index>(line.source.size() - longest);
      line.source.resize(longest);
      line.source.shrink_to_fit();  // or a thousand such lines would keep all their tokens' places
    }
    sources.push_back({i, first.source_vocabulary().ids(line.source)});
    text.append(sources.back().ids);
  }
  const auto note_done = [&](std::size_t count) {
    if (options.progress != nullptr) options.progress->add(static_cast<Index>(count));
  };
  note_done(lines.size() - sources.size());  // blank ones
  if (sources.empty()) return results;
  const Index hypotheses = options.sampling ? options.search.n_best : options.search.beam;
  for (const auto& sentences : batches_by_length(text, std::max<Index>(1, options.batch_tokens / hypotheses))) {
    const Batch batch = make_source_batch(text, sentences);
    const auto found = hypotheses_of(networks, batch, sources, options);
    auto alignments = alignments_of(networks, batch, sources, found, options.alignments);
    for (std::size_t s = 0; s < sentences.size(); ++s) {
      TranslatedLine& line = results[sources[static_cast<std::size_t>(sentences[s])].line];
      for (std::size_t h = 0; h < found[s].size(); ++h) {
        std::vector<std::string> tokens = words_of(first, line.source, found[s][h].tokens, alignments[s][h]);
        std::string joined = first.target_tokenizer().join(tokens);
        // Subwords spell a text in several ways: the best one stands for all, while draws stay as they fell.
        const auto same = [&](const Translation& t) { return t.text == joined; };
        if (!options.sampling && std::any_of(line.translations.begin(), line.translations.end(), same)) continue;
        if (!options.alignments) alignments[s][h] = {};
        line.translations.push_back(
            {std::move(joined), found[s][h].score, std::move(tokens), std::move(alignments[s][h])});
      }
    }
    note_done(sentences.size());
  }
  return results;
}

std::vector<TranslatedLine> translate(const TranslationModel& model, std::span<const std::string> lines,
                                      const SearchOptions& options, Index batch_tokens) {
  const TranslationModel* const models[] = {&model};
  return translate(models, lines, {.search = options, .batch_tokens = batch_tokens});
}

AttentionMap attention_map(const TranslationModel& model, std::string_view source, std::string_view translation) {
  AttentionMap map;
  map.source = model.source_tokenizer().split(source);
  map.target = model.target_tokenizer().split(translation);
  const auto longest = static_cast<std::size_t>(model.longest_sentence());
  if (map.source.empty() || map.target.empty()) {
    throw DataError("no attention to draw: the source or its translation has no words");
  }
  map.source.resize(std::min(map.source.size(), longest));
  map.target.resize(std::min(map.target.size(), longest));
  Corpus pair;
  pair.source.append(model.source_vocabulary().ids(map.source));
  pair.target.append(model.target_vocabulary().ids(map.target));
  map.source.emplace_back(kSpecialTokens[kEnd]);
  map.target.emplace_back(kSpecialTokens[kEnd]);
  const Index first[] = {0};
  const Tensor weights = cross_attention_weights(model.transformer(), make_batch(pair, first)).at(0);
  for (Index head = 0; head < weights.shape()[0]; ++head) {  // [heads, target, source]
    const auto values = weights.row_range(head, head + 1).values();
    map.heads.emplace_back(values.begin(), values.end());
  }
  return map;
}

}  // namespace weft

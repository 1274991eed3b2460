#include "weft/train/translate.h"

#include <algorithm>

#include "weft/core/error.h"
#include "weft/data/batch.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

std::vector<TokenId> source_ids(const TranslationModel& model, std::string_view line) {
  return model.source_vocabulary().ids(model.source_tokenizer().split(line));
}

}  // namespace

SearchOptions search_options(const DecodingConfig& config) {
  return {.beam = config.beam,
          .n_best = 1,
          .length_penalty = config.length_penalty,
          .max_length_ratio = config.max_length_ratio,
          .max_length_extra = config.max_length_extra};
}

std::vector<TranslatedLine> translate(const TranslationModel& model, std::span<const std::string> lines,
                                      const SearchOptions& options, Index batch_tokens) {
  std::vector<TranslatedLine> results(lines.size());
  EncodedText text;
  std::vector<std::size_t> line_of;  // sentences of `text`; blank lines have none
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<TokenId> ids = source_ids(model, lines[i]);
    if (ids.empty() || is_blank(lines[i])) {
      results[i].translations.push_back({});
      continue;
    }
    const auto longest = static_cast<std::size_t>(model.longest_sentence());
    if (ids.size() > longest) {
      results[i].cut_tokens = static_cast<Index>(ids.size() - longest);
      ids.resize(longest);
    }
    text.append(ids);
    line_of.push_back(i);
  }
  if (line_of.empty()) return results;
  for (const auto& sentences : batches_by_length(text, std::max<Index>(1, batch_tokens / options.beam))) {
    const Batch batch = make_source_batch(text, sentences);
    const auto found = search(model.transformer(), batch.source, batch.source_rows, options);
    for (std::size_t s = 0; s < sentences.size(); ++s) {
      TranslatedLine& line = results[line_of[static_cast<std::size_t>(sentences[s])]];
      for (const Hypothesis& hypothesis : found[s]) {
        line.translations.push_back(
            {model.target_tokenizer().join(model.target_vocabulary().tokens(hypothesis.tokens)), hypothesis.score});
      }
      if (line.translations.empty()) {  // only if every probability was NaN
        throw Error("the model's output is not a number; the checkpoint is from a run that diverged");
      }
    }
  }
  return results;
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
  std::vector<TokenId> source_tokens = model.source_vocabulary().ids(map.source);
  std::vector<TokenId> input = model.target_vocabulary().ids(map.target);
  source_tokens.push_back(kEnd);
  input.insert(input.begin(), kBegin);
  map.source.emplace_back(kSpecialTokens[kEnd]);
  map.target.emplace_back(kSpecialTokens[kEnd]);

  const auto source_length = static_cast<Index>(source_tokens.size()), length = static_cast<Index>(input.size());
  const Ragged source_rows = Ragged::of_lengths({source_length}), rows = Ragged::of_lengths({length});
  AttentionRecord record;
  Context context;
  context.attention = &record;
  const Var memory = model.transformer().encode(context, source_tokens, source_rows);
  model.transformer().decode(context, input, rows, memory, source_rows);
  if (record.empty()) throw ConfigError("no layer of this model shows its cross-attention");
  const Tensor weights = record.back().second.at(0);  // [heads, target, source]
  for (Index head = 0; head < weights.shape()[0]; ++head) {
    const auto values = weights.row_range(head, head + 1).values();
    map.heads.emplace_back(values.begin(), values.end());
  }
  return map;
}

}  // namespace weft

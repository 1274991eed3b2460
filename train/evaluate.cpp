#include "weft/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "weft/core/error.h"
#include "weft/data/batch.h"
#include "weft/train/translate.h"

namespace weft {

LossResult evaluate_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens) {
  TokenStatistics statistics;
  LossResult result;
  for (const auto& sentences : batches_by_length(corpus, batch_tokens)) {
    const Batch batch = make_batch(corpus, sentences);
    model.transformer().loss(Context{},
                             {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
                             {0, 1, &statistics});
    result.tokens += batch.target_rows.rows();
  }
  result.loss = statistics.negative_log_likelihood / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.token_accuracy = static_cast<double>(statistics.correct) / static_cast<double>(result.tokens);
  return result;
}

TranslationResult evaluate_translations(const TranslationModel& model, std::span<const std::string> source,
                                        std::span<const std::vector<std::string>> references, const Metrics& metrics,
                                        const SearchOptions& options, Index batch_tokens) {
  TranslationResult result;
  for (TranslatedLine& line : translate(model, source, options, batch_tokens)) {
    result.cut_lines += line.cut_tokens > 0;
    result.translations.push_back(std::move(line.translations.front().text));
  }
  result.exact = exact_matches(result.translations, references);
  for (const auto& metric : metrics) result.counts.push_back(count_lines(*metric, result.translations, references));
  return result;
}

std::vector<bool> exact_matches(std::span<const std::string> hypotheses,
                                std::span<const std::vector<std::string>> references) {
  std::vector<bool> exact(hypotheses.size());
  for (const auto& reference : references) {
    if (reference.size() != hypotheses.size()) {
      throw DataError(
          fmt::format("exact match: {} hypotheses but {} references; line i of one belongs to line i of "
                      "the other",
                      hypotheses.size(), reference.size()));
    }
    for (std::size_t i = 0; i < hypotheses.size(); ++i) exact[i] = exact[i] || hypotheses[i] == reference[i];
  }
  return exact;
}

double share_of(const std::vector<bool>& exact) {
  if (exact.empty()) return 0;
  return static_cast<double>(std::count(exact.begin(), exact.end(), true)) / static_cast<double>(exact.size());
}

double share_of(const std::vector<bool>& exact, std::span<const std::size_t> lines) {
  if (lines.empty()) return 0;
  const auto count = std::count_if(lines.begin(), lines.end(), [&](std::size_t line) { return exact[line]; });
  return static_cast<double>(count) / static_cast<double>(lines.size());
}

std::vector<LengthBucket> buckets_by_length(std::span<const Index> lengths) {
  constexpr Index kFirst[] = {0, 1, 6, 11, 21, 31, 51};  // of each bucket
  std::vector<LengthBucket> buckets{{"0", {}},     {"1-5", {}},   {"6-10", {}}, {"11-20", {}},
                                    {"21-30", {}}, {"31-50", {}}, {"51+", {}}};
  for (std::size_t line = 0; line < lengths.size(); ++line) {
    const auto after = std::upper_bound(std::begin(kFirst), std::end(kFirst), lengths[line]);
    buckets[static_cast<std::size_t>(after - std::begin(kFirst)) - 1].lines.push_back(line);
  }
  std::erase_if(buckets, [](const LengthBucket& bucket) { return bucket.lines.empty(); });
  return buckets;
}

}  // namespace weft

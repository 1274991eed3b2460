#include "weft/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/train/decode_rules.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

/// What a string of so many bytes takes: itself, and what the heap gives for a text that does not fit into it.
double string_bytes(double bytes) {
  constexpr double kWithin = 15, kHeader = 16;
  return sizeof(std::string) + (bytes > kWithin ? bytes + kHeader : 0);
}

/// What tokens of one language take.
struct TokenBytes {
  double token = 0;  ///< as a string
  double text = 0;   ///< in a joined line
};

/// The means of the first sentences of a text.
TokenBytes mean_bytes(const EncodedText& text, Index sentences, const Tokenizer& tokenizer,
                      const Vocabulary& vocabulary) {
  TokenBytes sum;
  double count = 0;
  for (Index s = 0; s < std::min(sentences, static_cast<Index>(kLinesAtOnce)); ++s) {
    const std::vector<std::string> tokens = vocabulary.tokens(text[s]);
    for (const std::string& token : tokens) sum.token += string_bytes(static_cast<double>(token.size()));
    sum.text += static_cast<double>(tokenizer.join(tokens).size());
    count += static_cast<double>(tokens.size());
  }
  return {sum.token / std::max(count, 1.0), sum.text / std::max(count, 1.0)};
}

/// What a metric takes, about, to count such a line: 8 bytes for a character or a word, and a copy.
double count_bytes(std::string_view line) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  const auto bytes = static_cast<double>(line.size());
  return bytes + 8 * (bytes - static_cast<double>(std::count_if(line.begin(), line.end(), continues)));
}

/// What metrics take for the longest of these lines that are counted at once, and as many hypotheses of so many bytes.
double count_bytes(std::span<const std::string> references, double hypothesis) {
  constexpr std::size_t kTile = 64;  // lines that one thread counts in turn: see count_lines()
  std::vector<double> lines;
  lines.reserve(references.size());
  for (const std::string& line : references) lines.push_back(count_bytes(line));
  const auto at_once =
      static_cast<std::ptrdiff_t>(std::min((lines.size() + kTile - 1) / kTile, static_cast<std::size_t>(threads())));
  std::partial_sort(lines.begin(), lines.begin() + at_once, lines.end(), std::greater<>());
  return std::accumulate(lines.begin(), lines.begin() + at_once, 9 * hypothesis * static_cast<double>(at_once));
}

}  // namespace

void batch_loss(const TranslationModel& model, const Batch& batch, TokenStatistics& statistics) {
  model.transformer().loss(Context{},
                           {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
                           {0, 1, &statistics});
}

LossResult evaluate_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens) {
  TokenStatistics statistics;
  LossResult result;
  for (const auto& sentences : batches_by_length(corpus, batch_tokens)) {
    const Batch batch = make_batch(corpus, sentences);
    batch_loss(model, batch, statistics);
    result.tokens += batch.target_rows.rows();
  }
  if (result.tokens == 0) {
    result.loss = result.perplexity = result.token_accuracy = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  result.loss = statistics.negative_log_likelihood / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.token_accuracy = static_cast<double>(statistics.correct) / static_cast<double>(result.tokens);
  return result;
}

TranslationResult evaluate_translations(const TranslationModel& model, std::span<const std::string> source,
                                        std::span<const std::vector<std::string>> references, const Metrics& metrics,
                                        const SearchOptions& options, Index batch_tokens, LineProgress* progress) {
  const TranslationModel* const models[] = {&model};
  const TranslateOptions how{.search = options, .batch_tokens = batch_tokens, .progress = progress};
  TranslationResult result;
  result.translations.reserve(source.size());
  for (std::size_t begin = 0; begin < source.size(); begin += kLinesAtOnce) {
    const auto lines = source.subspan(begin, std::min(kLinesAtOnce, source.size() - begin));
    for (const TranslatedLine& line : translate(models, lines, how)) {
      result.cut_lines += line.cut_tokens > 0;
      result.translations.push_back(line.translations.front().text);  // copied: without the room it grew in
    }
  }
  result.exact = exact_matches(result.translations, references);
  for (const auto& metric : metrics) result.counts.push_back(count_lines(*metric, result.translations, references));
  return result;
}

TranslationBytes translation_bytes(const TranslationModel& model, const Corpus& corpus, Index pairs,
                                   const Metrics& metrics, const SearchOptions& options,
                                   std::span<const std::string> references) {
  const TokenBytes read = mean_bytes(corpus.source, pairs, model.source_tokenizer(), model.source_vocabulary()),
                   written = mean_bytes(corpus.target, pairs, model.target_tokenizer(), model.target_vocabulary());
  // A vector that has grown takes up to twice its elements. A source has its ids twice: alone, and with others.
  constexpr double kGrown = 1.4, kIds = kGrown * 2 * sizeof(TokenId), kHeader = 16,
                   kLine = sizeof(TranslatedLine) + sizeof(Translation) + 4 * kHeader;
  double counts = 1.0 / 8;  // and a bit that says whether it is exact
  for (const auto& metric : metrics) counts += static_cast<double>(metric->width() * sizeof(Index));
  double kept = 0, block = 0, most = 0, longest = 0;
  for (Index i = 0; i < pairs; ++i) {
    if (i % static_cast<Index>(kLinesAtOnce) == 0) block = 0;
    const Index length = corpus.source.length(i);
    const auto tokens = static_cast<double>(length_limit(length, model.transformer().options().max_length, options));
    const double text = string_bytes(tokens * written.text);
    kept += counts + text;
    block += kLine + text + tokens * written.token + static_cast<double>(length) * (kGrown * read.token + kIds);
    most = std::max(most, block);
    longest = std::max(longest, tokens * written.text);
  }
  const double count = metrics.empty() ? 0 : count_bytes(references, longest);
  return {static_cast<Index>(kept), static_cast<Index>(most), static_cast<Index>(count)};
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

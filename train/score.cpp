#include "weft/train/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/data/utf8.h"
#include "weft/data/vocabulary.h"

namespace weft {
namespace {

/// The log-probability of each row of the target in model `m`.
std::vector<double> log_probabilities(TransformerSpan models, std::size_t m, const Batch& batch) {
  const Transformer& model = *models[m];
  constexpr Index kChunk = 256;  // rows whose logits exist at a time
  const Var memory = model.encode(Context{}, batch.source, batch.source_rows);
  const Var states = model.decode(Context{}, batch.decoder_input, batch.target_rows, memory, batch.source_rows);
  std::vector<double> result;
  std::vector<real> log_sums;
  for (Index begin = 0; begin < states.rows(); begin += kChunk) {
    const Tensor logits =
        model.logits(Context{}, slice_rows(states, begin, std::min(begin + kChunk, states.rows()))).value();
    row_log_sums(logits, log_sums);
    require_numbers(log_sums, m);
    for (Index row = 0; row < logits.rows(); ++row) {
      const TokenId token = batch.target[static_cast<std::size_t>(begin + row)];
      const real one = logits.data()[row * logits.cols() + token] - log_sums[static_cast<std::size_t>(row)];
      result.push_back(std::min<double>(static_cast<double>(one), 0));
    }
  }
  return result;
}

/// The logarithm of the mean of e^x.
double log_mean(std::span<const double> x) {
  const double largest = *std::max_element(x.begin(), x.end());
  if (std::isinf(largest)) return largest;  // each is log 0
  double sum = 0;
  for (const double one : x) sum += std::exp(one - largest);
  return largest + std::log(sum / static_cast<double>(x.size()));
}

/// Why a pair has no score.
std::string reason_to_skip(const ParallelText& text, std::size_t i, const ScoredPair& pair, Index longest) {
  if (is_blank(text.source[i]) || pair.source.empty()) return "the source is blank";
  if (is_blank(text.target[i]) || pair.target.empty()) return "the target is blank";
  for (const auto& [side, tokens] : {std::pair("source", &pair.source), std::pair("target", &pair.target)}) {
    if (static_cast<Index>(tokens->size()) <= longest) continue;
    return fmt::format("the {} has {} tokens; the model holds {}", side, tokens->size(), longest);
  }
  return "";
}

}  // namespace

std::vector<double> target_log_probabilities(TransformerSpan models, const Batch& batch) {
  std::vector<std::vector<double>> each;
  for (std::size_t m = 0; m < models.size(); ++m) each.push_back(log_probabilities(models, m, batch));
  if (each.size() == 1) return std::move(each[0]);
  std::vector<double> result(each.at(0).size()), row(each.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t m = 0; m < each.size(); ++m) row[m] = each[m][i];
    result[i] = log_mean(row);
  }
  return result;
}

std::vector<ScoredPair> score(ModelSpan models, const ParallelText& text, const ScoreOptions& options) {
  const TranslationModel& first = *models.front();
  const std::vector<const Transformer*> networks = transformers(models);
  const Index longest = longest_sentence(models);
  std::vector<ScoredPair> pairs(text.source.size());
  Corpus corpus;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ScoredPair& pair = pairs[i];
    pair.source = first.source_tokenizer().split(text.source[i]);
    pair.target = first.target_tokenizer().split(text.target[i]);
    pair.skipped = reason_to_skip(text, i, pair, longest);
    if (!pair.skipped.empty()) {  // its tokens may be very many, and nobody looks at them
      pair.source = pair.target = std::vector<std::string>();
      continue;
    }
    corpus.source.append(first.source_vocabulary().ids(pair.source));
    const std::vector<TokenId> target = first.target_vocabulary().ids(pair.target);
    pair.unknown = std::count(target.begin(), target.end(), kUnknown);
    corpus.target.append(target);
    corpus.line.push_back(static_cast<Index>(i));
  }
  if (corpus.size() == 0) return pairs;
  for (const auto& sentences : batches_by_length(corpus, std::max<Index>(1, options.batch_tokens))) {
    const Batch batch = make_batch(corpus, sentences);
    const std::vector<double> all = target_log_probabilities(networks, batch);
    std::vector<Alignment> alignments;
    if (options.alignments) alignments = align(networks, batch);
    for (std::size_t s = 0; s < sentences.size(); ++s) {
      ScoredPair& pair = pairs[static_cast<std::size_t>(corpus.line[static_cast<std::size_t>(sentences[s])])];
      const auto begin = all.begin() + batch.target_rows.begin(static_cast<Index>(s));
      pair.log_probabilities.assign(begin, begin + batch.target_rows.length(static_cast<Index>(s)));
      pair.log_probability = std::accumulate(pair.log_probabilities.begin(), pair.log_probabilities.end(), 0.0);
      if (options.alignments) pair.alignment = std::move(alignments[s]);
    }
  }
  return pairs;
}

void ScoreSummary::add(const ScoredPair& pair) {
  ++(pair.skipped.empty() ? pairs : skipped);
  tokens += static_cast<Index>(pair.log_probabilities.size());
  log_probability += pair.log_probability;
}

double ScoreSummary::perplexity() const {
  return tokens == 0 ? std::numeric_limits<double>::quiet_NaN()
                     : std::exp(-log_probability / static_cast<double>(tokens));
}

}  // namespace weft

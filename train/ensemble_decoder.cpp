#include "weft/train/ensemble_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/core/kernels.h"

namespace weft {

Index max_length(TransformerSpan models) {
  const auto shortest = std::min_element(models.begin(), models.end(), [](const auto* a, const auto* b) {
    return a->options().max_length < b->options().max_length;
  });
  return (*shortest)->options().max_length;
}

EnsembleDecoder::EnsembleDecoder(TransformerSpan models, std::span<const TokenId> source, const Ragged& source_rows)
    : models_(models) {
  if (models.empty()) throw ConfigError("decoding: no model; give at least one");
  const TransformerOptions& first = models.front()->options();
  states_.reserve(models.size());
  for (const Transformer* model : models) {
    const TransformerOptions& options = model->options();
    if (options.source_vocabulary != first.source_vocabulary || options.target_vocabulary != first.target_vocabulary) {
      throw ConfigError(fmt::format(
          "decoding: models of {} and {} source, {} and {} target tokens cannot write together; use models of "
          "the same vocabularies",
          first.source_vocabulary, options.source_vocabulary, first.target_vocabulary, options.target_vocabulary));
    }
    states_.emplace_back(model->encode(Context{}, source, source_rows).value(), source_rows);
  }
}

void EnsembleDecoder::advance(std::span<const Index> parents, std::span<const TokenId> tokens,
                              const Ragged& rows_of_sentences) {
  for (DecodeState& state : states_) state.advance(parents, tokens, rows_of_sentences);
}

Tensor EnsembleDecoder::next_logits() {
  Tensor first = models_.front()->next_logits(states_.front());
  if (models_.size() == 1) return first;
  std::vector<Tensor> logits{std::move(first)};
  for (std::size_t m = 1; m < models_.size(); ++m) logits.push_back(models_[m]->next_logits(states_[m]));
  std::vector<const real*> data;
  std::vector<real> all_log_sums, log_sums;
  for (std::size_t m = 0; m < logits.size(); ++m) {
    row_log_sums(logits[m], log_sums);
    require_numbers(log_sums, m);
    all_log_sums.insert(all_log_sums.end(), log_sums.begin(), log_sums.end());
    data.push_back(logits[m].data());
  }
  Tensor mean(logits.front().shape());
  log_mean_softmax(mean.rows(), mean.cols(), data, all_log_sums, mean.data());
  return mean;
}

std::vector<TokenId> EnsembleDecoder::prefix(Index row) const {
  std::vector<TokenId> tokens = states_.front().prefix(row);
  tokens.erase(tokens.begin());  // <s>
  return tokens;
}

void row_log_sums(const Tensor& logits, std::vector<real>& log_sums) {
  const auto rows = static_cast<std::size_t>(logits.rows());
  std::vector<TokenId> best(rows);
  log_sums.resize(rows);
  best_columns(logits.rows(), logits.cols(), logits.data(), 0, 1, best.data(), log_sums.data());
}

void require_numbers(std::span<const real> log_sums, std::optional<std::size_t> model) {
  const bool all = std::all_of(log_sums.begin(), log_sums.end(), [](real one) { return std::isfinite(one); });
  if (!all) throw NotANumberError(model);
}

}  // namespace weft

#include "weft/nn/decode_state.h"

#include <fmt/format.h>

#include "weft/core/error.h"

namespace weft {

void DecodeState::advance(std::span<const Index> parents, std::span<const TokenId> tokens, Ragged rows_of_sentences) {
  const bool first = tokens_.empty();
  if (rows_of_sentences.sequences() != memory_rows_.sequences() ||
      rows_of_sentences.rows() != static_cast<Index>(tokens.size()) || (!first && parents.size() != tokens.size())) {
    throw ShapeError(fmt::format("[decode] {} tokens, {} parents, {} rows of {} sentences; must fit the {} sentences",
                                 tokens.size(), parents.size(), rows_of_sentences.rows(), rows_of_sentences.sequences(),
                                 memory_rows_.sequences()));
  }
  const std::size_t steps = tokens_.size();
  std::vector<Index> ancestors;
  ancestors.reserve(tokens.size() * (steps + 1));
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    if (!first) {
      if (parents[row] < 0 || parents[row] >= rows()) {
        throw ShapeError(fmt::format("[decode] parent {} of {} rows", parents[row], rows()));
      }
      const auto begin = ancestors_.begin() + parents[row] * static_cast<Index>(steps);
      ancestors.insert(ancestors.end(), begin, begin + static_cast<Index>(steps));
    }
    ancestors.push_back(static_cast<Index>(row));
  }
  ancestors_ = std::move(ancestors);
  tokens_.emplace_back(tokens.begin(), tokens.end());
  rows_of_sentences_ = std::move(rows_of_sentences);
}

std::vector<TokenId> DecodeState::prefix(Index row) const {
  std::vector<TokenId> tokens;
  const auto steps = static_cast<Index>(tokens_.size());
  for (Index t = 0; t < steps; ++t) {
    const Index ancestor = ancestors_[static_cast<std::size_t>(row * steps + t)];
    tokens.push_back(tokens_[static_cast<std::size_t>(t)][static_cast<std::size_t>(ancestor)]);
  }
  return tokens;
}

std::span<const real* const> DecodeState::keep(const Module& owner, Tensor key_value) {
  Past& past = past_[&owner];
  if (static_cast<Index>(past.steps.size()) != step() || key_value.rows() != rows()) {
    throw ShapeError(
        fmt::format("[decode] {} keeps {} rows as step {} at step {} of {} rows; logits are to be asked for "
                    "once a step",
                    owner.name(), key_value.rows(), past.steps.size(), step(), rows()));
  }
  past.data.push_back(key_value.data());
  past.steps.push_back(std::move(key_value));
  return past.data;
}

}  // namespace weft

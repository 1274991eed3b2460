// One or several Transformers that write together, step by step. Which sentences are decoded together changes no result.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/ragged.h"
#include "weft/nn/transformer.h"

namespace weft {

/// Transformers with the same source and target tokens, whose probabilities are averaged; at least one.
using TransformerSpan = std::span<const Transformer* const>;

/// The output of a model is not a number, as that of one that diverged.
class NotANumberError : public Error {
 public:
  /// `model` is the number, from 0, of the model among those that work together; nothing if it is not known.
  explicit NotANumberError(std::optional<std::size_t> model)
      : Error("the model's output is not a number; the checkpoint is from a run that diverged"), model_(model) {}

  std::optional<std::size_t> model() const { return model_; }

 private:
  std::optional<std::size_t> model_;
};

/// The most tokens that a sequence may have in all of these models, </s> or <s> counted.
Index max_length(TransformerSpan models);

/// The decoding of a batch of sentences, each with any number of hypotheses (rows). See DecodeState.
class EnsembleDecoder {
 public:
  /// Encodes the sentences `source`, each with its </s>. Throws ConfigError for models whose vocabularies differ in size.
  EnsembleDecoder(TransformerSpan models, std::span<const TokenId> source, const Ragged& source_rows);

  /// Begins the next step; see DecodeState::advance.
  void advance(std::span<const Index> parents, std::span<const TokenId> tokens, const Ragged& rows_of_sentences);

  /// What follows each row, [rows, vocabulary()]: the logits of a single model, or of several the logarithm of the mean of
  /// their probabilities. To be called once a step. Throws NotANumberError for one of several.
  Tensor next_logits();

  /// The tokens of a row, without <s>.
  std::vector<TokenId> prefix(Index row) const;

  Index vocabulary() const { return models_.front()->options().target_vocabulary; }

 private:
  TransformerSpan models_;
  std::vector<DecodeState> states_;
};

/// Writes the logarithm of the sum of all e^logit of each row of `logits`.
void row_log_sums(const Tensor& logits, std::vector<real>& log_sums);

/// Throws NotANumberError of a model unless these logarithms are finite: one NaN or infinity in a row shows in its sum.
void require_numbers(std::span<const real> log_sums, std::optional<std::size_t> model);

}  // namespace weft

// The past of hypotheses that grow by one position a step. Keys and values are kept where they were computed; reordering
// hypotheses (beam search) changes only a table of ancestors.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "weft/core/ragged.h"
#include "weft/core/tensor.h"
#include "weft/nn/module.h"

namespace weft {

/// Decoding of a batch of sentences, each with any number of hypotheses (rows), which lie side by side.
class DecodeState {
 public:
  /// `memory` [memory rows, d_model] is the encoder's output for the sentences `memory_rows`.
  DecodeState(Tensor memory, Ragged memory_rows) : memory_(std::move(memory)), memory_rows_(std::move(memory_rows)) {}

  /// Begins the next step, in which row i continues row parents[i] of the step before with token tokens[i]; `parents` is
  /// not read at the first step. rows_of_sentences gives each sentence's rows; a sentence that is done has none. Throws
  /// ShapeError if the sizes do not fit.
  void advance(std::span<const Index> parents, std::span<const TokenId> tokens, Ragged rows_of_sentences);

  /// The position of the tokens given last: 0 at the first step.
  Index step() const { return static_cast<Index>(tokens_.size()) - 1; }
  Index rows() const { return static_cast<Index>(tokens_.back().size()); }
  const Tensor& memory() const { return memory_; }
  const Ragged& memory_rows() const { return memory_rows_; }
  /// The rows of each sentence: query rows of cross-attention.
  const Ragged& rows_of_sentences() const { return rows_of_sentences_; }
  /// For row r at step t, at [r * (step() + 1) + t], the row that it was then.
  std::span<const Index> ancestors() const { return ancestors_; }
  /// The token that a row was advanced by.
  TokenId last_token(Index row) const { return tokens_.back()[static_cast<std::size_t>(row)]; }
  /// All tokens of a row, from the first step on.
  std::vector<TokenId> prefix(Index row) const;

  /// Keeps keys and values [rows(), 2 d_model] of this step for a self-attention module, and gives those of all steps.
  /// Throws ShapeError unless called once for each step.
  std::span<const real* const> keep(const Module& owner, Tensor key_value);
  /// What a cross-attention module keeps for the whole decoding; not defined until set.
  Tensor& projection(const Module& owner) { return projections_[&owner]; }

 private:
  struct Past {
    std::vector<Tensor> steps;
    std::vector<const real*> data;
  };

  Tensor memory_;
  Ragged memory_rows_, rows_of_sentences_;
  std::vector<std::vector<TokenId>> tokens_;  // [step][row]
  std::vector<Index> ancestors_;
  std::map<const Module*, Past> past_;
  std::map<const Module*, Tensor> projections_;
};

}  // namespace weft

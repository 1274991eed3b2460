// Packed batches, and plans of which sentences go into which batch. A plan takes every sentence exactly once
// and depends on its arguments alone, so that a run resumed in the middle of an epoch goes on with the same
// batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/core/function_ref.h"
#include "weft/core/ragged.h"
#include "weft/core/random.h"
#include "weft/core/types.h"
#include "weft/data/corpus.h"

namespace weft {

/// Sentence pairs x1 … xm, y1 … yn laid end to end, without padding. Shifting right happens here and nowhere
/// else.
struct Batch {
  std::vector<TokenId> source;  ///< x1 … xm </s>, so that no source is empty.
  Ragged source_rows;
  std::vector<TokenId> decoder_input;  ///< <s> y1 … yn
  std::vector<TokenId> target;         ///< y1 … yn </s>
  Ragged target_rows;                  ///< Of decoder_input and target alike.
  std::vector<Index> sentences;        ///< Which sentence of the corpus each sequence is.
};

/// Packs these sentences, in this order.
Batch make_batch(const Corpus& corpus, std::span<const Index> sentences);

/// Packs the source side alone, to translate from; the target side is left empty.
Batch make_source_batch(const EncodedText& source, std::span<const Index> sentences);

/// Plans the batches of training: pairs of similar length together, batches in random order, both new in each
/// epoch.
///
/// An epoch shuffles all pairs, cuts them into pools of about 100 batches, sorts each pool by (target length,
/// source length), cuts it into batches, and shuffles the batches. A batch holds as many pairs as fit into
/// batch_tokens, counted as source and target tokens with one special each; a longer pair is a batch alone.
/// The last batch may be smaller. The number of batches may differ a little between epochs.
class BatchPlan {
 public:
  /// Throws DataError for an empty corpus, ConfigError if batch_tokens is less than 1. Keeps no reference to
  /// the corpus.
  BatchPlan(const Corpus& corpus, Index batch_tokens, std::uint64_t seed);

  /// The batches of epoch `number`, from 0, in the order to train on them: a pure function of the
  /// constructor's arguments and `number`.
  std::vector<std::vector<Index>> epoch(Index number) const;

  /// Gives the batches of epoch() to `take`, in another order, one at a time: it does not hold them all.
  void each_batch(Index number, FunctionRef<void(std::span<const Index>)> take) const;

 private:
  Random random_of(Index number) const;
  /// Gives `take` the batches of an epoch that `random` shuffles.
  void cut_epoch(Random& random, FunctionRef<void(std::span<const Index>)> take) const;

  struct Lengths {
    std::int32_t target, source;
  };

  std::vector<Lengths> lengths_;
  Index batch_tokens_;
  std::uint64_t seed_;
};

/// Batches for validation: all pairs by (target length, source length), ties in corpus order, as many to a
/// batch as fit into batch_tokens, counted as in BatchPlan. Throws ConfigError if batch_tokens is less
/// than 1.
std::vector<std::vector<Index>> batches_by_length(const Corpus& corpus, Index batch_tokens);

/// Batches for translation: all sentences by length, ties in order, with at most batch_tokens source tokens,
/// </s> included; a longer sentence is a batch alone. Throws ConfigError if batch_tokens is less than 1.
std::vector<std::vector<Index>> batches_by_length(const EncodedText& source, Index batch_tokens);

}  // namespace weft

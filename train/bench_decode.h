// How fast a model translates: searches over synthetic sentences whose results all have the same length, whatever the
// weights are, so that the work depends on the model's shape alone.
#pragma once

#include <vector>

#include "weft/nn/transformer.h"

namespace weft {

/// What is searched for.
struct DecodeBenchOptions {
  Index sentences = 32;        ///< in a batch; as many are also searched one after the other
  Index single_sentences = 4;  ///< or only so many of them, as those take longer
  Index length = 32;           ///< tokens of each source with its </s>, and of each result without its </s>
  Index rounds = 5;            ///< timed, after one that is not
  std::uint64_t seed = 1;      ///< of the sources
};

/// One way to search, and how long it took.
struct DecodeBenchResult {
  Index beam = 1;      ///< 1 is greedy
  Index batch = 1;     ///< sentences searched together
  Index tokens = 0;    ///< written in a round, each sentence's </s> among them: one for each step of a sentence
  double seconds = 0;  ///< of the median round, encoding and search
  double tokens_per_second = 0;  ///< tokens / seconds
};

/// What was read and written, without <s> and </s> except for the sources' </s>.
struct DecodeBenchText {
  std::vector<std::vector<TokenId>> sources, outputs;
};

/// Times greedy search and beam 4, each for one sentence at a time and for all sentences together, in this order: beam 1
/// batch 1, beam 4 batch 1, beam 1 and beam 4 with all. Throws ConfigError if the model cannot hold the sentences.
std::vector<DecodeBenchResult> bench_decode(const Transformer& model, const DecodeBenchOptions& options);

/// The sources that bench_decode reads, and the best results for them with this beam.
DecodeBenchText bench_decode_text(const Transformer& model, const DecodeBenchOptions& options, Index beam);

}  // namespace weft

#include "weft/train/bench_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/data/vocabulary.h"
#include "weft/train/search.h"

namespace weft {
namespace {

using Sentences = std::vector<std::vector<TokenId>>;

Sentences make_sources(const Transformer& model, const DecodeBenchOptions& options) {
  const TransformerOptions& shape = model.options();
  const Index words = shape.source_vocabulary - (kEnd + 1);
  if (options.length < 1 || options.length >= shape.max_length || words < 1 || shape.target_vocabulary <= kEnd + 1) {
    throw ConfigError(
        fmt::format("bench decode: sentences of {} tokens do not fit a model of at most {} positions and "
                    "vocabularies of {} and {} tokens",
                    options.length, shape.max_length, shape.source_vocabulary, shape.target_vocabulary));
  }
  Random random(options.seed);
  Sentences sources(static_cast<std::size_t>(options.sentences));
  for (std::vector<TokenId>& source : sources) {
    while (static_cast<Index>(source.size()) < options.length - 1) {
      source.push_back(
          static_cast<TokenId>(kEnd + 1 + static_cast<Index>(random.below(static_cast<std::uint64_t>(words)))));
    }
    source.push_back(kEnd);
  }
  return sources;
}

/// Searches for the first `count` sources, `batch` at a time; returns the best results.
Sentences decode(const Transformer& model, const Sentences& sources, Index count, Index batch, Index beam,
                 Index length) {
  const SearchOptions search_options{
      .beam = beam, .n_best = 1, .length_penalty = 0, .min_length = length, .max_length = length};
  Sentences outputs;
  for (Index begin = 0; begin < count; begin += batch) {
    std::vector<TokenId> tokens;
    Ragged rows;
    for (Index s = begin; s < std::min(begin + batch, count); ++s) {
      const std::vector<TokenId>& source = sources[static_cast<std::size_t>(s)];
      tokens.insert(tokens.end(), source.begin(), source.end());
      rows.append(static_cast<Index>(source.size()));
    }
    for (const auto& found : search(model, tokens, rows, search_options)) {
      if (found.empty()) throw Error("bench decode: the model's output is not a number");
      outputs.push_back(found[0].tokens);
    }
  }
  return outputs;
}

}  // namespace

std::vector<DecodeBenchResult> bench_decode(const Transformer& model, const DecodeBenchOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Sentences sources = make_sources(model, options);
  std::vector<DecodeBenchResult> results;
  for (const bool together : {false, true}) {
    for (const Index beam : {1, 4}) {
      const Index count = together ? options.sentences : std::min(options.sentences, options.single_sentences);
      DecodeBenchResult result{.beam = beam, .batch = together ? options.sentences : 1};
      std::vector<double> seconds;
      for (Index round = 0; round <= std::max<Index>(options.rounds, 1); ++round) {
        const auto start = Clock::now();
        const Sentences outputs = decode(model, sources, count, result.batch, beam, options.length);
        if (round > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        result.tokens = 0;
        for (const auto& output : outputs) result.tokens += static_cast<Index>(output.size()) + 1;
      }
      std::sort(seconds.begin(), seconds.end());
      result.seconds = seconds[seconds.size() / 2];
      result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
      results.push_back(result);
    }
  }
  return results;
}

DecodeBenchText bench_decode_text(const Transformer& model, const DecodeBenchOptions& options, Index beam) {
  DecodeBenchText text;
  text.sources = make_sources(model, options);
  text.outputs = decode(model, text.sources, options.sentences, options.sentences, beam, options.length);
  return text;
}

}  // namespace weft

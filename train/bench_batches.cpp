#include "weft/train/bench_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/random.h"

namespace weft {
namespace {

constexpr std::string_view kRealistic = "realistic", kUniform = "uniform:";
constexpr Index kShortest = 5, kLongest = 40, kMean = 14;  // realistic lengths, with </s>
constexpr Index kBatches = 16;                             // of realistic lengths

/// A sentence pair's tokens with </s>.
struct Lengths {
  Index target, source;
};

/// A length from a log-normal distribution, as lengths of sentences have.
Lengths realistic_lengths(Random& random) {
  constexpr double kDeviation = 0.45;
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * random.uniform());
  const double target = std::exp(std::log(double{kMean}) - kDeviation * kDeviation / 2 + kDeviation * normal);
  const double source = target * (0.8 + 0.4 * random.uniform());
  const auto bounded = [](double length) {
    return std::clamp(static_cast<Index>(std::lround(length)), kShortest, kLongest);
  };
  return {bounded(target), bounded(source)};
}

void append_words(Random& random, Index words, Index vocabulary, EncodedText& text) {
  std::vector<TokenId> sentence(static_cast<std::size_t>(words));
  for (TokenId& word : sentence) {
    word = kEnd + 1 + static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary - kEnd - 1)));
  }
  text.append(sentence);
}

}  // namespace

std::optional<Index> longest_bench_sentence(std::string_view lengths) {
  if (lengths == kRealistic) return kLongest;
  if (lengths.substr(0, kUniform.size()) != kUniform) return std::nullopt;
  lengths.remove_prefix(kUniform.size());
  Index length = 0;
  const auto [end, error] = std::from_chars(lengths.data(), lengths.data() + lengths.size(), length);
  if (error != std::errc() || end != lengths.data() + lengths.size() || length < 2 || length > 1'000'000) {
    return std::nullopt;
  }
  return length;
}

std::vector<Batch> make_bench_batches(const Config& config) {
  const BenchConfig& bench = config.bench;
  const Index longest = longest_bench_sentence(bench.lengths).value();
  if (longest > config.model.max_length) {
    throw ConfigError(fmt::format("bench.lengths \"{}\" needs model.max_length to be at least {} (found {})",
                                  bench.lengths, longest, config.model.max_length));
  }
  const bool realistic = bench.lengths == kRealistic;
  Random random(static_cast<std::uint64_t>(config.training.seed), random_site("bench"));
  std::vector<Lengths> pairs;
  for (Index tokens = 0; tokens < bench.target_tokens * (realistic ? kBatches : 1); tokens += pairs.back().target) {
    pairs.push_back(realistic ? realistic_lengths(random) : Lengths{longest, longest});
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Lengths& a, const Lengths& b) {
    return std::pair(a.target, a.source) < std::pair(b.target, b.source);
  });
  Corpus corpus;
  std::vector<std::vector<Index>> plan;
  Index tokens = 0;
  for (const Lengths& pair : pairs) {
    // A batch ends with the sentence that fills it, and a last one that is not full is left out.
    if (plan.empty() || tokens >= bench.target_tokens) {
      plan.emplace_back();
      tokens = 0;
    }
    tokens += pair.target;
    plan.back().push_back(corpus.size());
    corpus.line.push_back(corpus.size());
    append_words(random, pair.source - 1, bench.vocabulary, corpus.source);
    append_words(random, pair.target - 1, bench.vocabulary, corpus.target);
  }
  if (plan.size() > 1 && tokens < bench.target_tokens) plan.pop_back();
  std::vector<Batch> batches;
  for (const auto& sentences : plan) batches.push_back(make_batch(corpus, sentences));
  return batches;
}

Index bench_decode_length(const Config& config) {
  return config.bench.lengths == kRealistic ? kMean : longest_bench_sentence(config.bench.lengths).value();
}

}  // namespace weft

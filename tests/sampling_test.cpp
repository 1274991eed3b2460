// Drawing tokens and whole translations: the distribution is the model's, and a draw depends on its own address alone.
#include "weft/train/sampling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "tiny_transformer.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"

using namespace weft;

namespace {

/// The share of [0, 1) that picks each token.
std::map<TokenId, double> shares(const std::vector<real>& logits, const Tokens& forbidden,
                                 const SamplingOptions& options) {
  constexpr int kPoints = 20000;
  std::map<TokenId, double> result;
  for (int i = 0; i < kPoints; ++i) {
    result[sampled_token(logits, forbidden, options, (i + 0.5) / kPoints)] += 1.0 / kPoints;
  }
  return result;
}

/// Checks that the shares are proportional to these weights, within the distance of points.
void check_shares(const std::map<TokenId, double>& found, const std::map<TokenId, double>& weights) {
  double sum = 0;
  for (const auto& one : weights) sum += one.second;
  CHECK(found.size() == weights.size());
  for (const auto& one : weights) {
    CAPTURE(one.first);
    REQUIRE(found.count(one.first) == 1);
    CHECK(std::abs(found.at(one.first) - one.second / sum) < 1e-4);
  }
}

std::vector<real> logarithms(const std::vector<double>& weights) {
  std::vector<real> result;
  for (const double weight : weights) result.push_back(static_cast<real>(std::log(weight) + 3));
  return result;
}

std::vector<std::vector<Hypothesis>> sample_all(const Tiny& tiny, const std::vector<Tokens>& sentences,
                                                const std::vector<Index>& lines, const SearchOptions& options,
                                                const SamplingOptions& sampling = {}) {
  const Packed packed(sentences);
  const Transformer* const models[] = {&tiny.model};
  return sample(models, packed.tokens, packed.rows, lines, options, sampling);
}

std::vector<std::vector<Tokens>> tokens_of_all(const std::vector<std::vector<Hypothesis>>& results) {
  std::vector<std::vector<Tokens>> tokens;
  for (const auto& one : results) tokens.push_back(tokens_of(one));
  return tokens;
}

}  // namespace

TEST_CASE("a token's share is its probability, sharper or flatter by the temperature") {
  const std::vector<double> weights{1, 2, 3, 4};
  check_shares(shares(logarithms(weights), {}, {}), {{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  check_shares(shares(logarithms(weights), {}, {.temperature = 0.5}), {{0, 1}, {1, 4}, {2, 9}, {3, 16}});
  check_shares(shares(logarithms(weights), {}, {.temperature = 2}),
               {{0, 1}, {1, std::sqrt(2)}, {2, std::sqrt(3)}, {3, 2}});
  check_shares(shares(logarithms(weights), {}, {.temperature = 1e-300}), {{3, 1}});
  check_shares(shares(logarithms(weights), {1, 3}, {}), {{0, 1}, {2, 3}});
}

TEST_CASE("top-k keeps the k most probable, of equal ones the smallest") {
  const std::vector<real> logits = logarithms({2, 5, 2, 3, 2});
  check_shares(shares(logits, {}, {.top_k = 1}), {{1, 1}});
  check_shares(shares(logits, {}, {.top_k = 2}), {{1, 5}, {3, 3}});
  check_shares(shares(logits, {}, {.top_k = 3}), {{0, 2}, {1, 5}, {3, 3}});
  check_shares(shares(logits, {}, {.top_k = 4}), {{0, 2}, {1, 5}, {2, 2}, {3, 3}});
  check_shares(shares(logits, {}, {.top_k = 100}), {{0, 2}, {1, 5}, {2, 2}, {3, 3}, {4, 2}});
  check_shares(shares(logits, {1}, {.top_k = 2}), {{0, 2}, {3, 3}});
}

TEST_CASE("top-p keeps the fewest that reach the share, of what top-k left") {
  const std::vector<real> logits = logarithms({1, 4, 2, 3});
  check_shares(shares(logits, {}, {.top_p = 1e-9}), {{1, 4}});
  check_shares(shares(logits, {}, {.top_p = 0.39}), {{1, 4}});
  check_shares(shares(logits, {}, {.top_p = 0.41}), {{1, 4}, {3, 3}});
  check_shares(shares(logits, {}, {.top_p = 0.69}), {{1, 4}, {3, 3}});
  check_shares(shares(logits, {}, {.top_p = 0.71}), {{1, 4}, {2, 2}, {3, 3}});
  check_shares(shares(logits, {}, {.top_p = 0.91}), {{0, 1}, {1, 4}, {2, 2}, {3, 3}});
  check_shares(shares(logits, {1}, {.top_p = 0.49}), {{3, 3}});
  check_shares(shares(logits, {}, {.top_k = 2, .top_p = 0.56}), {{1, 4}});  // 4 of 7
  check_shares(shares(logarithms({1, 1, 1, 1}), {}, {.top_p = 0.6}), {{0, 1}, {1, 1}, {2, 1}});
  // Against the rule itself on many tokens.
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> weights(300);
    for (double& weight : weights) weight = std::pow(random.uniform(), 8) + 1e-9;
    const double p = random.uniform(), all = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> sorted = weights;
    std::sort(sorted.rbegin(), sorted.rend());
    double sum = 0;
    std::size_t count = 0;
    while (sum < p * all) sum += sorted[count++];
    std::set<double> picked;
    for (int i = 0; i < 3000; ++i) {
      picked.insert(
          weights[static_cast<std::size_t>(sampled_token(logarithms(weights), {}, {.top_p = p}, (i + 0.5) / 3000))]);
    }
    CHECK(*picked.begin() > sorted[count - 1] * 0.999);
    CHECK(picked.size() <= count);
  }
}

TEST_CASE("nothing is drawn where nothing is allowed or a number is none") {
  CHECK(sampled_token(logarithms({1, 2}), Tokens{0, 1}, {}, 0.5) == -1);
  CHECK(sampled_token(std::vector<real>{1, std::numeric_limits<real>::quiet_NaN()}, {}, {}, 0.5) == -1);
  const real never = -std::numeric_limits<real>::infinity();
  CHECK(sampled_token(std::vector<real>{never, never}, {}, {}, 0.5) == -1);
  CHECK(sampled_token(std::vector<real>{1, never}, {}, {}, 0.9999999) == 0);
  CHECK(sampled_token(std::vector<real>{never, 1}, {}, {}, 0) == 1);
}

TEST_CASE("whole samples come as often as the model's probability says") {
  Tiny tiny(4, 2);
  Tensor values = tiny.parameters.values();
  for (real& value : values.values()) value *= real(0.4);  // many sequences with a chance
  const Tokens source = sources({2}, 4, 2).at(0);
  constexpr Index kLines = 4000;
  std::vector<Index> lines(kLines);
  std::iota(lines.begin(), lines.end(), Index{1});
  const SearchOptions options{.length_penalty = 0.6, .max_length = 2, .allow_unknown = true};
  const auto results = sample_all(tiny, std::vector<Tokens>(kLines, source), lines, options);
  std::map<Tokens, Index> counts;
  for (const auto& samples : results) {
    REQUIRE(samples.size() == 1);
    const Tokens& tokens = samples[0].tokens;
    ++counts[tokens];
    CHECK(samples[0].log_probability == doctest::Approx(log_probability(tiny, source, tokens)).epsilon(1e-4));
    CHECK(samples[0].score == samples[0].log_probability / length_penalty(static_cast<Index>(tokens.size()) + 1, 0.6));
  }
  Index compared = 0, seen = 0;
  for (const Tokens& tokens :
       {Tokens{}, {0}, {3}, {4}, {0, 0}, {0, 3}, {0, 4}, {3, 0}, {3, 3}, {3, 4}, {4, 0}, {4, 3}, {4, 4}}) {
    const auto steps = forced(tiny, source, tokens);
    double probability = 1;
    for (std::size_t i = 0; i < 2 && i <= tokens.size(); ++i) {  // what follows two tokens is certain
      const auto next = static_cast<std::size_t>(i < tokens.size() ? tokens[i] : kEnd);
      probability *= std::exp(steps[i][next]) / (1 - std::exp(steps[i][kBegin]));  // <s> is never drawn
    }
    const double deviation = std::sqrt(probability * (1 - probability) / kLines);
    CAPTURE(tokens.size());
    CAPTURE(probability);
    CHECK(std::abs(static_cast<double>(counts[tokens]) / kLines - probability) < 4 * deviation + 1e-4);
    compared += probability > 0.01 ? 1 : 0;
    seen += counts[tokens];
  }
  CHECK(compared >= 4);
  CHECK(seen == kLines);
}

TEST_CASE("a sample depends on sentence, seed, line and its number alone") {
  const Tiny tiny(3, 5);
  const std::vector<Tokens> sentences = sources({0, 9, 1, 4, 4, 0, 7, 2, 3}, 5, 5);
  std::vector<Index> lines(sentences.size());
  std::iota(lines.begin(), lines.end(), Index{100});
  const SearchOptions options{.n_best = 3, .max_length_ratio = 1, .max_length_extra = 4};
  const auto together = tokens_of_all(sample_all(tiny, sentences, lines, options));
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    REQUIRE(together[s].size() == 3);
    CHECK(tokens_of_all(sample_all(tiny, {sentences[s]}, {lines[s]}, options))[0] == together[s]);
  }
  std::vector<Tokens> reversed(sentences.rbegin(), sentences.rend());
  auto after = tokens_of_all(sample_all(tiny, reversed, {lines.rbegin(), lines.rend()}, options));
  std::reverse(after.begin(), after.end());
  CHECK(after == together);
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    CHECK(tokens_of_all(sample_all(tiny, sentences, lines, options)) == together);
  }
  set_threads(1);
  SearchOptions fewer = options;
  fewer.n_best = 1;
  const auto first = tokens_of_all(sample_all(tiny, sentences, lines, fewer));
  for (std::size_t s = 0; s < sentences.size(); ++s) CHECK(first[s][0] == together[s][0]);

  CHECK(tokens_of_all(sample_all(tiny, sentences, lines, options, {.seed = 2})) != together);
  std::vector<Index> others = lines;
  for (Index& line : others) line += 50;
  CHECK(tokens_of_all(sample_all(tiny, sentences, others, options)) != together);
  std::set<Tokens> different;
  for (const Tokens& one : together[1]) different.insert(one);
  CHECK(different.size() >= 2);
}

TEST_CASE("samples keep to lengths, n-grams and words; the coldest are greedy") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Tiny tiny(seed, 4);
    const auto sentences = sources({0, 2, 5}, seed, 4);
    SearchOptions options{.n_best = 20, .min_length = 2, .max_length = 4, .no_repeat_ngram = 2};
    for (const auto& samples : sample_all(tiny, sentences, {1, 2, 3}, options)) {
      REQUIRE(samples.size() == 20);
      for (const Hypothesis& one : samples) {
        CHECK(one.tokens.size() >= 2);
        CHECK(one.tokens.size() <= 4);
        CHECK(std::all_of(one.tokens.begin(), one.tokens.end(), [](TokenId t) { return t > kEnd; }));
        std::set<Tokens> pairs;
        for (std::size_t i = 1; i < one.tokens.size(); ++i) pairs.insert({one.tokens[i - 1], one.tokens[i]});
        CHECK(pairs.size() == one.tokens.size() - 1);
      }
    }
    options = {.beam = 1, .n_best = 1, .max_length = 6};
    const Packed packed(sentences);
    const auto greedy = tokens_of_all(search(tiny.model, packed.tokens, packed.rows, options));
    CHECK(tokens_of_all(sample_all(tiny, sentences, {1, 2, 3}, options, {.temperature = 1e-6})) == greedy);
    CHECK(tokens_of_all(sample_all(tiny, sentences, {1, 2, 3}, options, {.top_k = 1})) == greedy);
    CHECK(tokens_of_all(sample_all(tiny, sentences, {1, 2, 3}, options, {.top_p = 1e-9})) == greedy);
  }
}

TEST_CASE("several models draw by the mean of their probabilities; a diverged model is an error") {
  const Tiny a(1, 3), b(2, 3);
  const auto packed = Packed(sources({2, 4, 1}, 1));
  const std::vector<Index> lines{1, 2, 3};
  const SearchOptions options{.n_best = 4, .max_length = 5};
  const Transformer *const one[] = {&a.model}, *const same[] = {&a.model, &a.model},
                           *const both[] = {&a.model, &b.model};
  const auto alone = sample(one, packed.tokens, packed.rows, lines, options, {});
  CHECK(tokens_of_all(sample(same, packed.tokens, packed.rows, lines, options, {})) == tokens_of_all(alone));
  const auto mixed = sample(both, packed.tokens, packed.rows, lines, options, {});
  const Tokens source(packed.tokens.begin(), packed.tokens.begin() + 3);
  for (const Hypothesis& sampled : mixed[0]) {
    double total = 0;
    const auto x = forced(a, source, sampled.tokens), y = forced(b, source, sampled.tokens);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto token = static_cast<std::size_t>(i < sampled.tokens.size() ? sampled.tokens[i] : kEnd);
      total += std::log((std::exp(x[i][token]) + std::exp(y[i][token])) / 2);
    }
    CHECK(sampled.log_probability == doctest::Approx(total).epsilon(1e-4));
  }

  Tiny broken(1);
  Tensor values = broken.parameters.values();
  std::fill(values.values().begin(), values.values().end(), std::numeric_limits<real>::quiet_NaN());
  const Transformer* const bad[] = {&broken.model};
  CHECK_THROWS_AS(sample(bad, packed.tokens, packed.rows, lines, options, {}), NotANumberError);
  // A single draw that goes wrong is no less of one.
  Tiny partly(1);
  for (const ParameterEntry& entry : partly.parameters.entries()) {
    if (entry.name == "target_embedding.weight") {
      partly.parameters.value(entry).data()[4 * 8] = std::numeric_limits<real>::quiet_NaN();
    }
  }
  const Transformer* const half_bad[] = {&partly.model};
  CHECK_THROWS_AS(sample(half_bad, packed.tokens, packed.rows, lines, {.n_best = 40, .max_length = 5}, {}),
                  NotANumberError);
}

#include "weft/train/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "tiny_transformer.h"
#include "weft/core/gemm_rows.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"
#include "weft/data/vocabulary.h"
#include "weft/nn/registry.h"

using namespace weft;

namespace {

/// Results of searches, sentence by sentence.
std::vector<std::vector<Hypothesis>> search_all(const Tiny& tiny, const std::vector<Tokens>& sentences,
                                                const SearchOptions& options) {
  const Packed packed(sentences);
  return search(tiny.model, packed.tokens, packed.rows, options);
}

std::vector<Hypothesis> search_one(const Tiny& tiny, const Tokens& sentence, const SearchOptions& options) {
  return search_all(tiny, {sentence}, options).at(0);
}

/// Every sequence of at most `longest` words, best first.
std::vector<Hypothesis> brute_force(const Tiny& tiny, const Tokens& source, Index longest, double alpha) {
  std::vector<Tokens> sequences{{}};
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (static_cast<Index>(sequences[i].size()) == longest) break;
    for (TokenId word = 3; word < tiny.model.options().target_vocabulary; ++word) {
      sequences.push_back(sequences[i]);
      sequences.back().push_back(word);
    }
  }
  std::vector<Hypothesis> all;
  for (const Tokens& tokens : sequences) {
    const double total = log_probability(tiny, source, tokens);
    const double penalty = std::pow((5.0 + static_cast<double>(tokens.size()) + 1) / 6.0, alpha);
    all.push_back({tokens, total, total / penalty});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

/// The most probable next token, again and again, by running the whole prefix each time.
Tokens greedy(const Tiny& tiny, const Tokens& source, Index longest) {
  Tokens written;
  while (static_cast<Index>(written.size()) < longest) {
    const std::vector<double> next = forced(tiny, source, written).back();
    const auto best = std::max_element(next.begin() + kEnd, next.end()) - next.begin();
    if (best == kEnd) break;
    written.push_back(static_cast<TokenId>(best));
  }
  return written;
}

/// A layer that keeps no past, so that its decoder must be run on whole prefixes.
class ForgetfulFeedForward : public FeedForward {
 public:
  using FeedForward::FeedForward;
  bool incremental() const override { return false; }
};

}  // namespace

TEST_CASE("a beam that covers everything finds exactly the best of all sequences") {
  const Index longest = 4;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Tiny tiny(seed);
    const Tokens source = sources({seed + 1}, seed).at(0);
    for (const double alpha : {0.0, 0.6, 1.0, 3.0}) {
      const auto all = brute_force(tiny, source, longest, alpha);
      REQUIRE(all.size() == 1 + 3 + 9 + 27 + 81);
      for (const Index n : {1, 2, 10, 121, 400}) {
        CAPTURE(seed);
        CAPTURE(alpha);
        CAPTURE(n);
        const auto found = search_one(tiny, source, {400, n, alpha, 0, longest});
        REQUIRE(found.size() == static_cast<std::size_t>(std::min<Index>(n, 121)));
        const auto tokens = tokens_of(found);
        CHECK(std::set<Tokens>(tokens.begin(), tokens.end()).size() == tokens.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].score == doctest::Approx(all[i].score).epsilon(1e-5));
          CHECK(found[i].log_probability ==
                doctest::Approx(log_probability(tiny, source, found[i].tokens)).epsilon(1e-5));
        }
      }
    }
  }
}

TEST_CASE("beam 1 is greedy decoding") {
  std::set<std::size_t> lengths;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    const Tiny tiny(seed, 5);
    for (const Tokens& source : sources({0, 1, 3, 6}, seed, 5)) {
      CAPTURE(seed);
      CAPTURE(source.size());
      const Index longest = 2 * static_cast<Index>(source.size() - 1) + 3;
      const auto found = search_one(tiny, source, {1, 1, 0.6, 2, 3});
      REQUIRE(found.size() == 1);
      CHECK(found[0].tokens == greedy(tiny, source, std::min<Index>(longest, 11)));
      lengths.insert(found[0].tokens.size());
    }
  }
  CHECK(lengths.size() >= 5);  // the models are no trivial ones
}

TEST_CASE("results are sorted, distinct, finished, within the limit, and never hold a special") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Tiny tiny(seed, 4);
    for (const Index beam : {2, 5, 16}) {
      const auto results = search_all(tiny, sources({0, 2, 5}, seed, 4), {beam, beam, 0.6, 1.5, 2});
      const std::vector<Index> limits{2, 5, 9};
      for (std::size_t s = 0; s < results.size(); ++s) {
        CAPTURE(seed);
        CAPTURE(beam);
        const auto& found = results[s];
        CHECK(found.size() >= 1);
        CHECK(found.size() <= static_cast<std::size_t>(beam));
        const auto tokens = tokens_of(found);
        CHECK(std::set<Tokens>(tokens.begin(), tokens.end()).size() == tokens.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(static_cast<Index>(tokens[i].size()) <= limits[s]);
          CHECK(std::all_of(tokens[i].begin(), tokens[i].end(), [](TokenId t) { return t > kEnd && t < 7; }));
          CHECK(found[i].log_probability < 0);
          CHECK(found[i].score ==
                found[i].log_probability / length_penalty(static_cast<Index>(tokens[i].size()) + 1, 0.6));
          if (i > 0) CHECK(found[i - 1].score >= found[i].score);
        }
      }
    }
  }
}

TEST_CASE("a sentence's results do not depend on what it is searched with, or on the number of threads") {
  const Tiny tiny(3, 5);
  const std::vector<Tokens> sentences = sources({0, 9, 1, 4, 4, 0, 7, 2, 3}, 5, 5);
  for (const Index beam : {1, 4}) {
    const SearchOptions options{beam, std::min<Index>(beam, 3), 0.6, 1, 3};
    const auto together = search_all(tiny, sentences, options);
    for (std::size_t s = 0; s < sentences.size(); ++s) {
      const auto alone = search_one(tiny, sentences[s], options);
      CHECK(tokens_of(alone) == tokens_of(together[s]));
      for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(alone[i].score == doctest::Approx(together[s][i].score).epsilon(kRowsAreFast ? 1e-30 : 1e-5));
      }
    }
    std::vector<std::size_t> order(sentences.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random(9).shuffle(order);
    std::vector<Tokens> shuffled;
    for (const std::size_t s : order) shuffled.push_back(sentences[s]);
    const auto after = search_all(tiny, shuffled, options);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(tokens_of(after[i]) == tokens_of(together[order[i]]));

    for (const int count : {1, 2, 3}) {
      set_threads(count);
      const auto threaded = search_all(tiny, sentences, options);
      for (std::size_t s = 0; s < sentences.size(); ++s) {
        CHECK(tokens_of(threaded[s]) == tokens_of(together[s]));
        for (std::size_t i = 0; i < threaded[s].size(); ++i) CHECK(threaded[s][i].score == together[s][i].score);
      }
    }
    set_threads(1);
  }
}

TEST_CASE("a decoder that keeps no past finds the same") {
  Registry layers = standard_layers();
  layers.add<ForgetfulFeedForward>("feed_forward", "forgetful");
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Tiny keeping(seed, 4), forgetful(seed, 4, 12, layers, "forgetful");
    const auto sentences = sources({3, 0, 6}, seed, 4);
    const SearchOptions options{4, 4, 0.6, 1, 3};
    const auto a = search_all(keeping, sentences, options), b = search_all(forgetful, sentences, options);
    for (std::size_t s = 0; s < sentences.size(); ++s) {
      CHECK(tokens_of(a[s]) == tokens_of(b[s]));
      for (std::size_t i = 0; i < a[s].size(); ++i)
        CHECK(a[s][i].score == doctest::Approx(b[s][i].score).epsilon(1e-5));
    }
  }
}

TEST_CASE("a beam larger than the vocabulary gives every sequence there is, and no rubbish") {
  const Tiny tiny(2, 2);  // </s> and two words
  const Tokens source = sources({2}, 1, 2).at(0);
  const auto all = search_one(tiny, source, {16, 16, 0.6, 0, 2});
  CHECK(all.size() == 1 + 2 + 4);
  CHECK(search_one(tiny, source, {16, 16, 0.6, 0, 1}).size() == 1 + 2);
  CHECK(search_one(tiny, source, {16, 16, 0.6, 2, 3}).size() == 16);
  const Tiny no_words(2, 0);  // every result is the empty one
  CHECK(tokens_of(search_one(no_words, {kEnd}, {16, 16, 0.6, 2, 3})) == std::vector<Tokens>{{}});
}

TEST_CASE("limits: one extra token, and a model that holds two") {
  const Tiny tiny(4, 3), small(4, 3, 2);
  for (const Hypothesis& one : search_one(tiny, sources({0}, 1)[0], {8, 8, 0.6, 2, 1})) CHECK(one.tokens.size() <= 1);
  const auto found = search_one(small, sources({1}, 1)[0], {8, 8, 0.6, 100, 1'000'000'000});
  CHECK(found.size() == 1 + 3);
  for (const Hypothesis& one : found) CHECK(one.tokens.size() <= 1);
}

TEST_CASE("min_length and max_length bound the results exactly, and change nothing else") {
  std::set<std::size_t> free_lengths;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Tiny tiny(seed, 4);
    const auto sentences = sources({0, 2, 5}, seed, 4);
    for (const Index beam : {1, 4}) {
      SearchOptions options{beam, beam, 0.6, 1, 3};
      const auto unbounded = search_all(tiny, sentences, options);
      options.min_length = options.max_length = 6;
      for (const auto& found : search_all(tiny, sentences, options)) {
        REQUIRE_FALSE(found.empty());
        for (const Hypothesis& one : found) CHECK(one.tokens.size() == 6);
      }
      options.min_length = 4;
      options.max_length = 0;
      const auto bounded = search_all(tiny, sentences, options);
      for (std::size_t s = 0; s < sentences.size(); ++s) {
        const auto limit = sentences[s].size() - 1 + 3;  // for the first sentence below min_length
        CHECK_FALSE(bounded[s].empty());
        for (const Hypothesis& one : bounded[s]) {
          CHECK(one.tokens.size() >= std::min<std::size_t>(4, limit));
          CHECK(one.tokens.size() <= limit);
          CHECK(one.log_probability == doctest::Approx(log_probability(tiny, sentences[s], one.tokens)).epsilon(1e-5));
        }
        free_lengths.insert(unbounded[s][0].tokens.size());
      }
      options.min_length = 0;
      options.max_length = 100;  // more than the model holds
      for (const auto& found : search_all(tiny, sentences, options)) {
        for (const Hypothesis& one : found) CHECK(one.tokens.size() <= 11);
      }
    }
  }
  CHECK(*free_lengths.begin() < 4);  // what min_length forbids would have been written
}

TEST_CASE("a source of </s> alone is searched like any other, also beside a long one") {
  const Tiny tiny(6, 4);
  const auto sentences = sources({0, 10, 0}, 2, 4);
  const auto found = search_all(tiny, sentences, {4, 4, 0.6, 2, 5});
  REQUIRE(found.size() == 3);
  CHECK_FALSE(found[0].empty());
  CHECK(tokens_of(found[0]) == tokens_of(found[2]));
  for (const Hypothesis& one : found[0]) CHECK(std::isfinite(one.score));
}

TEST_CASE("an output that is not a number ends a search, though other hypotheses have numbers") {
  for (const real bad : {std::numeric_limits<real>::quiet_NaN(), std::numeric_limits<real>::infinity()}) {
    const Tiny good(1);
    Tiny tiny(1);
    for (const ParameterEntry& entry : tiny.parameters.entries()) {
      if (entry.name == "target_embedding.weight") tiny.parameters.value(entry).data()[4 * 8] = bad;
    }
    const SearchOptions options{6, 2, 0.6, 2, 5};
    const Packed packed(sources({2}, 1));
    const Transformer *const one[] = {&tiny.model}, *const both[] = {&good.model, &tiny.model};
    for (const TransformerSpan models : {TransformerSpan(one), TransformerSpan(both)}) {
      std::optional<std::size_t> blamed;
      try {
        search(models, packed.tokens, packed.rows, options);
      } catch (const NotANumberError& error) {
        blamed = error.model();
      }
      CHECK(blamed == models.size() - 1);
    }
  }
}

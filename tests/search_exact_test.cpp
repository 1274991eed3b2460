// Searches against every sequence there is, and against a search that never stops early.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "tiny_transformer.h"
#include "weft/core/error.h"
#include "weft/train/decode_rules.h"

using namespace weft;

namespace {

using Models = std::vector<const Tiny*>;

std::vector<Hypothesis> search_one(const Models& models, const Tokens& source, const SearchOptions& options) {
  std::vector<const Transformer*> transformers;
  for (const Tiny* tiny : models) transformers.push_back(&tiny->model);
  return search(transformers, source, Ragged::of_lengths({static_cast<Index>(source.size())}), options).at(0);
}

/// The logarithm of the mean of the models' probabilities of each token after what was written. Remembers them.
class Truth {
 public:
  Truth(Models models, Tokens source) : models_(std::move(models)), source_(std::move(source)) {}

  const std::vector<double>& after(const Tokens& written) {
    std::vector<double>& logarithms = known_[written];
    if (!logarithms.empty()) return logarithms;
    for (const Tiny* model : models_) {
      const std::vector<double> one = forced(*model, source_, written).back();
      logarithms.resize(one.size());
      for (std::size_t v = 0; v < one.size(); ++v) logarithms[v] += std::exp(one[v]);
    }
    for (double& value : logarithms) value = std::log(value / static_cast<double>(models_.size()));
    return logarithms;
  }
  TokenId vocabulary() const { return static_cast<TokenId>(models_[0]->model.options().target_vocabulary); }
  const Tokens& source() const { return source_; }
  const Models& models() const { return models_; }

 private:
  Models models_;
  Tokens source_;
  std::map<Tokens, std::vector<double>> known_;
};

bool repeats(const Tokens& tokens, Index n) {
  std::set<Tokens> seen;
  for (auto begin = tokens.begin(); n > 0 && tokens.end() - begin >= n; ++begin) {
    if (!seen.insert(Tokens(begin, begin + n)).second) return true;
  }
  return false;
}

/// The words that may follow, by the rules of SearchOptions.
Tokens followers(Truth& truth, const Tokens& written, const SearchOptions& options) {
  Tokens words;
  if (static_cast<Index>(written.size()) == options.max_length) return words;
  for (TokenId word = 0; word < truth.vocabulary(); ++word) {
    if (word == kBegin || word == kEnd || (word == kUnknown && !options.allow_unknown)) continue;
    Tokens longer = written;
    longer.push_back(word);
    if (!repeats(longer, options.no_repeat_ngram)) words.push_back(word);
  }
  return words;
}

bool may_end(const Tokens& written, const Tokens& words, const SearchOptions& options) {
  return words.empty() || static_cast<Index>(written.size()) >= options.min_length;
}

Hypothesis finished(Truth& truth, const Tokens& written, double past, const SearchOptions& options) {
  const double total = past + truth.after(written)[kEnd];
  return {written, total,
          total / std::pow((5.0 + static_cast<double>(written.size()) + 1) / 6.0, options.length_penalty)};
}

void sort_by_score(std::vector<Hypothesis>& all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
}

/// Every sequence that the options allow.
void collect(Truth& truth, const Tokens& written, double past, const SearchOptions& options,
             std::vector<Hypothesis>& all) {
  const Tokens words = followers(truth, written, options);
  if (may_end(written, words, options)) all.push_back(finished(truth, written, past, options));
  for (const TokenId word : words) {
    Tokens longer = written;
    longer.push_back(word);
    collect(truth, longer, past + truth.after(written)[static_cast<std::size_t>(word)], options, all);
  }
}

std::vector<Hypothesis> brute_force(Truth& truth, const SearchOptions& options) {
  std::vector<Hypothesis> all;
  collect(truth, {}, 0, options, all);
  sort_by_score(all);
  return all;
}

/// Beam search that goes on to the longest length, whatever it has found.
std::vector<Hypothesis> patient_search(Truth& truth, const SearchOptions& options) {
  struct Live {
    Tokens tokens;
    double log_probability;
  };
  std::vector<Hypothesis> all;
  std::vector<Live> live{{{}, 0}};
  while (!live.empty()) {
    std::vector<std::tuple<double, std::size_t, TokenId>> next;  // minus the logarithm, row, token
    for (std::size_t row = 0; row < live.size(); ++row) {
      const Tokens words = followers(truth, live[row].tokens, options);
      const auto add = [&](TokenId token) {
        next.emplace_back(-live[row].log_probability - truth.after(live[row].tokens)[static_cast<std::size_t>(token)],
                          row, token);
      };
      if (may_end(live[row].tokens, words, options)) add(kEnd);
      for (const TokenId word : words) add(word);
    }
    std::sort(next.begin(), next.end());
    next.resize(std::min(next.size(), static_cast<std::size_t>(options.beam)));
    std::vector<Live> longer;
    for (const auto& [negative, row, token] : next) {
      if (token == kEnd) {
        all.push_back(finished(truth, live[row].tokens, live[row].log_probability, options));
      } else {
        longer.push_back({live[row].tokens, -negative});
        longer.back().tokens.push_back(token);
      }
    }
    live = std::move(longer);
  }
  sort_by_score(all);
  all.resize(std::min(all.size(), static_cast<std::size_t>(options.n_best)));
  return all;
}

void check_same(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& wanted, std::size_t count) {
  REQUIRE(found.size() == std::min(wanted.size(), count));
  std::set<Tokens> distinct;
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].score == doctest::Approx(wanted[i].score).epsilon(1e-5));
    if (i > 0) CHECK(found[i - 1].score >= found[i].score);
    distinct.insert(found[i].tokens);
  }
  CHECK(distinct.size() == found.size());
}

constexpr Index kEverything = 1024;

}  // namespace

TEST_CASE("no sequence of up to six words is missed by a beam that holds all prefixes") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Tiny tiny(seed, 2);
    Truth truth({&tiny}, sources({seed + 1}, seed, 2).at(0));
    for (const double alpha : {-1.0, 0.0, 0.6, 2.0}) {
      for (const Index shortest : {0, 3, 6}) {
        for (const Index longest : {1, 4, 6}) {
          for (const Index n_best : {1, 3, 1000}) {
            CAPTURE(seed);
            CAPTURE(alpha);
            CAPTURE(shortest);
            CAPTURE(longest);
            CAPTURE(n_best);
            const SearchOptions options{.beam = kEverything,
                                        .n_best = n_best,
                                        .length_penalty = alpha,
                                        .min_length = shortest,
                                        .max_length = longest};
            const auto all = brute_force(truth, options);
            const auto found = search_one(truth.models(), truth.source(), options);
            check_same(found, all, static_cast<std::size_t>(n_best));
            for (const Hypothesis& one : found) {
              CHECK(static_cast<Index>(one.tokens.size()) >= std::min(shortest, longest));
              CHECK(static_cast<Index>(one.tokens.size()) <= longest);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a narrow beam that stops early finds what one that never stops finds") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Tiny tiny(seed, 3);
    Truth truth({&tiny}, sources({seed % 4}, seed, 3).at(0));
    for (const double alpha : {-0.5, 0.0, 0.6, 1.0, 3.0}) {
      for (const Index beam : {1, 2, 3, 5}) {
        for (const Index n_best : {Index{1}, beam}) {
          CAPTURE(seed);
          CAPTURE(alpha);
          CAPTURE(beam);
          CAPTURE(n_best);
          const SearchOptions options{.beam = beam, .n_best = n_best, .length_penalty = alpha, .max_length = 6};
          check_same(search_one(truth.models(), truth.source(), options), patient_search(truth, options),
                     static_cast<std::size_t>(n_best));
        }
      }
    }
  }
}

TEST_CASE("no_repeat_ngram leaves out just the sequences that repeat one, in wide beams and in narrow ones") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Tiny tiny(seed, 2);
    Truth truth({&tiny}, sources({3}, seed, 2).at(0));
    for (const Index n : {1, 2, 3, 7}) {
      for (const Index shortest : {0, 5}) {
        for (const Index beam : {Index{1}, Index{2}, kEverything}) {
          CAPTURE(seed);
          CAPTURE(n);
          CAPTURE(shortest);
          CAPTURE(beam);
          const SearchOptions options{
              .beam = beam, .n_best = beam, .min_length = shortest, .max_length = 6, .no_repeat_ngram = n};
          const auto found = search_one(truth.models(), truth.source(), options);
          const auto wanted = beam == kEverything ? brute_force(truth, options) : patient_search(truth, options);
          check_same(found, wanted, static_cast<std::size_t>(beam));
          for (const Hypothesis& one : found) CHECK_FALSE(repeats(one.tokens, n));
          // Two words cannot make five without repeating one: the longest that there are are taken instead.
          if (n == 1 && shortest == 5) {
            for (const Hypothesis& one : found) CHECK(one.tokens.size() == 2);
          }
        }
      }
    }
  }
}

TEST_CASE("allow_unknown lets <unk> be written like any word") {
  std::size_t with_unknown = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Tiny tiny(seed, 2);
    Truth truth({&tiny}, sources({2}, seed, 2).at(0));
    for (const Index beam : {Index{2}, kEverything}) {
      const SearchOptions options{.beam = beam, .n_best = beam, .max_length = 4, .allow_unknown = true};
      const auto found = search_one(truth.models(), truth.source(), options);
      check_same(found, beam == kEverything ? brute_force(truth, options) : patient_search(truth, options),
                 static_cast<std::size_t>(beam));
      for (const Hypothesis& one : found) {
        CHECK(std::count(one.tokens.begin(), one.tokens.end(), kBegin) == 0);
        with_unknown += static_cast<std::size_t>(std::count(one.tokens.begin(), one.tokens.end(), kUnknown));
      }
    }
  }
  CHECK(with_unknown > 100);
}

TEST_CASE("several models find the best by the mean of their probabilities") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Tiny a(seed, 2), b(seed + 10, 2), c(seed + 20, 2);
    for (const Models& models : {Models{&a, &b}, Models{&a, &b, &c}}) {
      Truth truth(models, sources({3}, seed, 2).at(0));
      for (const Index beam : {Index{1}, Index{3}, kEverything}) {
        CAPTURE(seed);
        CAPTURE(models.size());
        CAPTURE(beam);
        const SearchOptions options{.beam = beam, .n_best = beam, .max_length = 5};
        check_same(search_one(models, truth.source(), options),
                   beam == kEverything ? brute_force(truth, options) : patient_search(truth, options),
                   static_cast<std::size_t>(beam));
      }
    }
    const SearchOptions options{.beam = 4, .n_best = 4, .max_length = 5};
    const Tokens source = sources({2}, seed, 2).at(0);
    const auto alone = search_one({&a}, source, options), thrice = search_one({&a, &a, &a}, source, options);
    CHECK(tokens_of(alone) == tokens_of(thrice));
    check_same(thrice, alone, 4);
    CHECK(search_one({&a, &b}, source, options)[0].score != doctest::Approx(alone[0].score).epsilon(1e-5));
  }
}

TEST_CASE("the shortest of several models limits the length; models of other vocabularies are refused") {
  const Tiny longer(1, 2), shorter(2, 2, 4), other(3, 3);
  const SearchOptions options{.beam = 2, .min_length = 50, .max_length = 100};
  CHECK(search_one({&longer}, {kEnd}, options).at(0).tokens.size() == 11);
  CHECK(search_one({&longer, &shorter}, {kEnd}, options).at(0).tokens.size() == 3);
  CHECK_THROWS_AS(search_one({&longer, &other}, {kEnd}, options), ConfigError);
  CHECK_THROWS_AS(search_one({}, {kEnd}, options), ConfigError);
}

TEST_CASE("what several models give for a step are logarithms of probabilities") {
  const Tiny a(1, 40), b(2, 40), c(3, 40);
  const Transformer* const models[] = {&a.model, &b.model, &c.model};
  const auto packed = Packed(sources({3, 0}, 1, 40));
  EnsembleDecoder decoder(models, packed.tokens, packed.rows);
  decoder.advance({}, Tokens{kBegin, kBegin}, Ragged::of_lengths({1, 1}));
  std::vector<real> log_sums;
  row_log_sums(decoder.next_logits(), log_sums);
  REQUIRE(log_sums.size() == 2);
  for (const real one : log_sums) CHECK(std::abs(one) < 1e-5);
}

TEST_CASE("the mean of probabilities that are too small for a float keeps its logarithm") {
  Tiny a(1, 2), b(2, 2);
  real bias = -300;
  for (Tiny* tiny : {&a, &b}) {
    for (const ParameterEntry& entry : tiny->parameters.entries()) {
      if (entry.name == "output.bias") tiny->parameters.value(entry).values()[3] = bias;
    }
    bias -= 100;
  }
  const auto found = search_one({&a, &b}, {kEnd}, {.beam = 8, .n_best = 8, .max_length = 1});
  REQUIRE(found.size() == 3);
  CHECK(found[2].tokens == Tokens{3});
  CHECK(found[2].log_probability == doctest::Approx(-300).epsilon(0.03));
}

TEST_CASE("repeating_tokens are those that would end an n-gram a second time") {
  CHECK(repeating_tokens(Tokens{5, 6, 5}, 0).empty());
  CHECK(repeating_tokens(Tokens{}, 1).empty());
  CHECK(repeating_tokens(Tokens{5, 6, 5}, 1) == Tokens{5, 6});
  CHECK(repeating_tokens(Tokens{5, 6, 5}, 2) == Tokens{6});
  CHECK(repeating_tokens(Tokens{5, 5}, 2) == Tokens{5});
  CHECK(repeating_tokens(Tokens{5, 9, 5, 7, 5, 9, 5}, 2) == Tokens{7, 9});
  CHECK(repeating_tokens(Tokens{5, 6, 7, 5, 6}, 3) == Tokens{7});
  CHECK(repeating_tokens(Tokens{5, 6, 7, 5, 6}, 4).empty());
  CHECK(repeating_tokens(Tokens{5, 6}, 3).empty());
}

TEST_CASE("log probabilities never rise above 0, even of a word that is all but certain") {
  Tiny tiny(1, 2);
  for (const ParameterEntry& entry : tiny.parameters.entries()) {
    if (entry.name == "output.bias") tiny.parameters.value(entry).values()[4] = 200;
  }
  const auto found = search_one({&tiny}, {kEnd}, {.beam = 1, .max_length = 6});
  REQUIRE(found.size() == 1);
  CHECK(found[0].tokens == Tokens(6, 4));
  CHECK(found[0].log_probability < -100);
  const auto all = search_one({&tiny}, {kEnd}, {.beam = 4, .n_best = 4, .max_length = 6});
  for (const Hypothesis& one : all) CHECK(one.log_probability <= 0);
}

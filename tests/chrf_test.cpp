#include "weft/train/chrf.h"

#include <doctest/doctest.h>

#include <cmath>

#include "limited_allocation.h"
#include "score_fixture.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/train/metrics.h"

using namespace weft;

TEST_CASE("chrF, chrF+ and chrF++ equal sacreBLEU's") {
  const auto scores = fixture_scores("chrf");
  REQUIRE(scores.size() >= 600);
  for (const FixtureScore& expected : scores) {
    const Json& score = expected.score;
    CAPTURE(Json(expected.hypotheses).dump());
    CAPTURE(Json(expected.references).dump());
    CAPTURE(score.dump());
    const Chrf metric({score["word_order"].get<std::size_t>(), score["lowercase"].get<bool>()});
    const std::vector<Index> sums = sums_of(metric, expected.hypotheses, expected.references);
    CHECK(std::abs(metric.score(sums) - score["score"].get<double>()) < 1e-9);
    CHECK(format_score(metric, sums) == score["printed"].get<std::string>());
    CHECK(before_version(signature(metric, expected.references.size())) == score["signature"].get<std::string>());
  }
}

TEST_CASE("a text against itself scores 100, nothing scores 0") {
  const Strings lines = {"A cat sat.", "", "caf\u00e9", ""};
  for (const std::size_t order : {0u, 2u}) {
    const Chrf metric({order, false});
    CHECK(score_of(metric, lines, {lines}) == 100.0);
    CHECK(score_of(metric, Strings(4), {lines}) == 0.0);
    CHECK(score_of(metric, Strings(4), {Strings(4)}) == 0.0);
    CHECK(score_of(metric, {}, {Strings()}) == 0.0);
  }
  CHECK_THROWS_SAYING(Chrf({3, false}), "word order is 3", ConfigError);
}

TEST_CASE("counts do not depend on the number of threads") {
  Strings hypotheses, references;
  for (int i = 0; i < 300; ++i) {
    hypotheses.push_back("line " + std::to_string(i * 7919 % 1000) + " of many");
    references.push_back("line " + std::to_string(i * 104729 % 1000) + " of them all");
  }
  const int before = threads();
  set_threads(1);
  const LineCounts one = count_lines(Chrf(), hypotheses, std::vector<Strings>{references});
  set_threads(3);
  CHECK(count_lines(Chrf(), hypotheses, std::vector<Strings>{references}) == one);
  set_threads(before);
}

TEST_CASE("metrics go by the names that users give") {
  BleuOptions options;
  options.lowercase = true;
  options.tokenizer = BleuTokenizer::kZh;
  const Metrics metrics = make_metrics("chrf++,bleu,chrf", options);
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[0]->key() == "chrf++");
  CHECK(metrics[0]->name() == "chrF2++");
  CHECK(metrics[0]->settings() == "case:lc|eff:yes|nc:6|nw:2|space:no");
  CHECK(metrics[1]->key() == "bleu");
  CHECK(metrics[1]->settings() == "case:lc|eff:no|tok:zh|smooth:exp");
  CHECK(metrics[2]->key() == "chrf");
  CHECK(metrics[2]->name() == "chrF2");
  CHECK_THROWS_SAYING(make_metrics("bleu,blue"), "\"blue\" is not a metric", ConfigError);
  CHECK_THROWS_SAYING(make_metrics("bleu,"), "\"\" is not a metric", ConfigError);
  CHECK_THROWS_SAYING(make_metrics("bleu,chrf,bleu"), "bleu is named twice", ConfigError);
}

TEST_CASE("a long line without a space takes 4 bytes of memory for each of its characters, twice") {
  const std::size_t length = 100'000;
  std::string line, other;
  for (std::size_t i = 0; i < length; ++i) {
    line += static_cast<char>('a' + i * i % 23);
    other += static_cast<char>('a' + i * i % 29 % 23);
  }
  const LimitedAllocation limit(5 * length);  // of a block; there are two such of each line
  for (const std::size_t word_order : {0u, 2u}) {
    const double score = score_of(Chrf({.word_order = word_order}), {line}, {{other}, {line.substr(1)}});
    CHECK(score > (word_order == 0 ? 99 : 50));
    CHECK(score < 100);
  }
}

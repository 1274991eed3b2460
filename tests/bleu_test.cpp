#include "weft/train/bleu.h"

#include <doctest/doctest.h>

#include <cmath>

#include "limited_allocation.h"
#include "score_fixture.h"
#include "throws.h"
#include "weft/core/error.h"

using namespace weft;

namespace {

BleuOptions options_of(const Json& score) {
  BleuOptions options;
  options.tokenizer = bleu_tokenizer(score["tokenize"].get<std::string>());
  options.smoothing = bleu_smoothing(score["smooth_method"].get<std::string>());
  if (!score["smooth_value"].is_null()) options.smooth_value = score["smooth_value"].get<double>();
  options.lowercase = score["lowercase"];
  return options;
}

BleuOptions smoothed(BleuSmoothing smoothing, std::optional<double> value = {}) {
  BleuOptions options;
  options.smoothing = smoothing;
  options.smooth_value = value;
  return options;
}

}  // namespace

TEST_CASE("BLEU equals sacreBLEU's with every tokenizer, smoothing and case") {
  const auto scores = fixture_scores("bleu");
  REQUIRE(scores.size() >= 400);
  for (const FixtureScore& expected : scores) {
    const Json& score = expected.score;
    CAPTURE(Json(expected.hypotheses).dump());
    CAPTURE(Json(expected.references).dump());
    CAPTURE(score.dump());
    const Bleu metric(options_of(score));
    const std::vector<Index> sums = sums_of(metric, expected.hypotheses, expected.references);
    const BleuScore bleu = metric.compute(sums);
    CHECK(std::abs(bleu.score - score["score"].get<double>()) < 1e-9);
    for (std::size_t n = 0; n < 4; ++n) {
      CHECK(std::abs(bleu.precisions[n] - score["precisions"][n].get<double>()) < 1e-9);
    }
    CHECK(std::abs(bleu.brevity_penalty - score["bp"].get<double>()) < 1e-9);
    CHECK(bleu.hypothesis_length == score["hyp_len"].get<Index>());
    CHECK(bleu.reference_length == score["ref_len"].get<Index>());
    CHECK(format_score(metric, sums) == score["printed"].get<std::string>());
    CHECK(before_version(signature(metric, expected.references.size())) == score["signature"].get<std::string>());
  }
}

TEST_CASE("BLEU of a sentence, with effective order, equals sacreBLEU's") {
  const Json& sentences = score_fixture()["sentences"];
  REQUIRE(sentences.size() >= 200);
  for (const Json& expected : sentences) {
    CAPTURE(expected.dump());
    BleuOptions options = options_of(expected);
    options.effective_order = true;
    const Bleu metric(options);
    std::vector<Strings> references;
    for (const Json& reference : expected["references"]) references.push_back({reference.get<std::string>()});
    const std::vector<Index> sums = sums_of(metric, {expected["hypothesis"].get<std::string>()}, references);
    CHECK(std::abs(metric.score(sums) - expected["score"].get<double>()) < 1e-9);
    CHECK(format_score(metric, sums) == expected["printed"].get<std::string>());
    CHECK(before_version(signature(metric, references.size())) == expected["signature"].get<std::string>());
  }
}

TEST_CASE("the tokenizers equal sacreBLEU's") {
  for (const std::string name : {"13a", "none", "char", "zh"}) {
    const Json tokens = score_fixture()["tokens"][name];
    REQUIRE(tokens.size() >= 300);
    const BleuTokenizer tokenizer = bleu_tokenizer(name);
    CHECK(name_of(tokenizer) == name);
    for (const Json& pair : tokens) {
      CAPTURE(pair.dump());
      CHECK(bleu_tokenize(pair[0].get<std::string>(), tokenizer) == pair[1].get<Strings>());
    }
  }
  CHECK_THROWS_SAYING(bleu_tokenizer("zn"), "must be 13a, none, char or zh; did you mean \"zh\"?", ConfigError);
}

TEST_CASE("a corpus against itself scores exactly 100, blank lines included") {
  const Strings lines = {"A cat sat.", "", "caf\u00e9 one two three four", ""};
  for (const auto smoothing :
       {BleuSmoothing::kExp, BleuSmoothing::kFloor, BleuSmoothing::kAddK, BleuSmoothing::kNone}) {
    CHECK(score_of(Bleu(smoothed(smoothing)), lines, {lines}) == 100.0);
  }
}

TEST_CASE("a floor above 1 may score more than 100, as sacreBLEU has it") {
  const Bleu bleu(smoothed(BleuSmoothing::kFloor, 20));
  CHECK(score_of(bleu, {"a b c x d"}, {{"a b c d"}}) == doctest::Approx(107.456993).epsilon(1e-8));
}

TEST_CASE("empty output scores 0, and so do no lines") {
  const Strings references = {"A cat sat.", "", "x"};
  CHECK(score_of(Bleu(), Strings(3), {references}) == 0.0);
  CHECK(score_of(Bleu(), Strings(3), {Strings(3)}) == 0.0);
  CHECK(score_of(Bleu(), {}, {Strings()}) == 0.0);
}

TEST_CASE("the score of some lines is that of a text of these lines") {
  const Strings hypotheses = {"a b c d e f", "x y z v w", "g h i j k", "l m n o p q"};
  const Strings references = {"a b c d e g", "x y z", "g h i j k", "l m n o q p r"};
  const LineCounts counts = count_lines(Bleu(), hypotheses, std::vector<Strings>{references});
  CHECK(counts.lines() == 4);
  const std::vector<std::size_t> drawn = {3, 0, 3};
  const Strings some = {hypotheses[3], hypotheses[0], hypotheses[3]};
  CHECK(counts.sums(drawn) == sums_of(Bleu(), some, {{references[3], references[0], references[3]}}));
  CHECK(counts.sums(drawn) != counts.sums());
}

TEST_CASE("unequal counts and impossible options are refused") {
  const auto count = [](const std::vector<Strings>& references) { sums_of(Bleu(), {"a", "b", "c"}, references); };
  CHECK_THROWS_SAYING(count({{"a", "b", "c"}, {"a", "b", "c", "d", "e"}}), "3 hypotheses but 5 references", DataError);
  CHECK_THROWS_SAYING(count({}), "at least one reference", DataError);
  CHECK_THROWS_SAYING(Bleu(smoothed(BleuSmoothing::kFloor, -1)), "smooth value is -1", ConfigError);
  CHECK_THROWS_SAYING(Bleu(smoothed(BleuSmoothing::kExp, 0.1)), "smoothing exp has no smooth value", ConfigError);
  CHECK_THROWS_SAYING(bleu_smoothing("flor"), "did you mean \"floor\"?", ConfigError);
}

TEST_CASE("a signature names the program, and the resampling if there is one") {
  CHECK(signature(Bleu(), 2).starts_with("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-"));
  CHECK(before_version(signature(Bleu(), 1, Resampling{500, 7})) ==
        "nrefs:1|bs:500|seed:7|case:mixed|eff:no|tok:13a|smooth:exp");
  CHECK(format_score(Bleu(), sums_of(Bleu(), {"a b c d"}, {{"a b c d"}}), "sig") ==
        "BLEU|sig = 100.00 100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.000 hyp_len = 4 ref_len = 4)");
}

TEST_CASE("a line of marks, each of which is a word, takes few bytes of memory for each") {
  const std::size_t length = 100'000;
  std::string line;
  for (std::size_t i = 0; i < length; ++i) line += "!?%$&"[i * i % 23 % 5];
  const LimitedAllocation limit(10 * length);  // of a block
  for (const auto tokenizer : {BleuTokenizer::k13a, BleuTokenizer::kZh, BleuTokenizer::kChar}) {
    BleuOptions options;
    options.tokenizer = tokenizer;
    const std::vector<Index> sums = sums_of(Bleu(options), {line}, {{line.substr(1)}});
    CHECK(sums == std::vector<Index>{100'000, 99'999, 99'999, 99'998, 99'997, 99'996, 100'000, 99'999, 99'998, 99'997});
  }
}

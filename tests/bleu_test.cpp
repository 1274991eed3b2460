#include "weft/train/bleu.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"

using namespace weft;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

namespace {

Json fixture() {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/fixtures/bleu.json");
  return Json::parse(in);
}

BleuOptions options_of(const Json& c) {
  BleuOptions options;
  options.tokenizer = c["tokenize"] == "13a" ? BleuTokenizer::k13a : BleuTokenizer::kNone;
  const std::string method = c["smooth_method"];
  options.smoothing = method == "exp"     ? BleuSmoothing::kExp
                      : method == "floor" ? BleuSmoothing::kFloor
                      : method == "add-k" ? BleuSmoothing::kAddK
                                          : BleuSmoothing::kNone;
  if (!c["smooth_value"].is_null()) options.smooth_value = c["smooth_value"].get<double>();
  return options;
}

std::string error_of(const Strings& hypotheses, const std::vector<Strings>& references) {
  try {
    corpus_bleu(hypotheses, references);
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("BLEU equals sacreBLEU's") {
  const Json cases = fixture()["cases"];
  REQUIRE(cases.size() >= 200);
  for (const Json& c : cases) {
    CAPTURE(c.dump());
    const Strings hypotheses = c["hypotheses"];
    const std::vector<Strings> references = c["references"];
    const BleuOptions options = options_of(c);
    const BleuScore bleu = corpus_bleu(hypotheses, references, options);
    CHECK(std::abs(bleu.score - c["score"].get<double>()) < 1e-9);
    for (std::size_t n = 0; n < 4; ++n) {
      CHECK(std::abs(bleu.precisions[n] - c["precisions"][n].get<double>()) < 1e-9);
    }
    CHECK(std::abs(bleu.brevity_penalty - c["bp"].get<double>()) < 1e-9);
    CHECK(bleu.hypothesis_length == c["hyp_len"].get<Index>());
    CHECK(bleu.reference_length == c["ref_len"].get<Index>());
    CHECK(format_bleu(bleu) == c["printed"].get<std::string>());

    const auto before_version = [](const std::string& s) { return s.substr(0, s.find("version:")); };
    const std::string signature = bleu_signature(options, static_cast<Index>(references.size()));
    CHECK(before_version(signature) == before_version(c["signature"].get<std::string>()));
    CHECK(signature.find("version:weft-") != std::string::npos);
  }
}

TEST_CASE("the 13a tokenizer equals sacreBLEU's") {
  const Json tokens = fixture()["tokens"];
  REQUIRE(tokens.size() >= 200);
  for (const Json& t : tokens) {
    CAPTURE(t.dump());
    CHECK(bleu_tokenize(t[0].get<std::string>(), BleuTokenizer::k13a) == t[1].get<Strings>());
  }
}

TEST_CASE("a corpus against itself scores exactly 100, blank lines included") {
  const Strings lines = {"A cat sat.", "", "caf\u00e9 one two three four", ""};
  for (const auto smoothing :
       {BleuSmoothing::kExp, BleuSmoothing::kFloor, BleuSmoothing::kAddK, BleuSmoothing::kNone}) {
    BleuOptions options;
    options.smoothing = smoothing;
    CHECK(corpus_bleu(lines, std::vector<Strings>{lines}, options).score == 100.0);
  }
}

TEST_CASE("empty output scores 0, and so do no lines") {
  const Strings references = {"A cat sat.", "", "x"};
  CHECK(corpus_bleu(Strings(3), std::vector<Strings>{references}).score == 0.0);
  CHECK(corpus_bleu(Strings(3), std::vector<Strings>{Strings(3)}).score == 0.0);
  CHECK(corpus_bleu(Strings(), std::vector<Strings>{Strings()}).score == 0.0);
}

TEST_CASE("unequal counts are refused with both counts") {
  const std::string text = error_of({"a", "b", "c"}, {{"a", "b", "c"}, {"a", "b", "c", "d", "e"}});
  CHECK(text.find("3 hypotheses") != std::string::npos);
  CHECK(text.find("5 references") != std::string::npos);
  CHECK(error_of({"a"}, {}).find("at least one reference") != std::string::npos);

  BleuOptions options;
  options.smooth_value = -1;
  CHECK_THROWS_AS(corpus_bleu(Strings{"a"}, std::vector<Strings>{{"a"}}, options), ConfigError);
}

TEST_CASE("exact match is the fraction of equal lines") {
  CHECK(exact_match(Strings{"a b", "", "c", "d "}, Strings{"a b", "", "x", "d"}) == 0.5);
  CHECK(exact_match(Strings{}, Strings{}) == 0.0);
  CHECK_THROWS_AS(exact_match(Strings{"a"}, Strings{"a", "b"}), DataError);
}

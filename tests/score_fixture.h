// sacreBLEU's own numbers, from tests/fixtures/scores.json; scripts/make_score_fixtures.py says how it is made.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/train/metric.h"

namespace weft {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

inline const Json& score_fixture() {
  static const Json json = [] {
    std::ifstream in(WEFT_SOURCE_DIR "/tests/fixtures/scores.json");
    return Json::parse(in);
  }();
  return json;
}

/// A score of the fixture with the text that it is of.
struct FixtureScore {
  Strings hypotheses;
  std::vector<Strings> references;
  Json score;
};

/// All scores by a metric, "bleu" or "chrf".
inline std::vector<FixtureScore> fixture_scores(const std::string& metric) {
  std::vector<FixtureScore> scores;
  for (const Json& corpus : score_fixture()["corpora"]) {
    for (const Json& score : corpus["scores"]) {
      if (score["metric"] == metric) scores.push_back({corpus["hypotheses"], corpus["references"], score});
    }
  }
  return scores;
}

/// The sums of a text's counts.
inline std::vector<Index> sums_of(const Metric& metric, const Strings& hypotheses,
                                  const std::vector<Strings>& references) {
  return count_lines(metric, hypotheses, references).sums();
}

inline double score_of(const Metric& metric, const Strings& hypotheses, const std::vector<Strings>& references) {
  return metric.score(sums_of(metric, hypotheses, references));
}

/// A signature as far as it does not name the program.
inline std::string before_version(const std::string& signature) {
  return signature.substr(0, signature.find("|version:weft-"));
}

}  // namespace weft

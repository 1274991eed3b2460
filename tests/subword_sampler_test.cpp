// Random segmentations: their distribution, and that they can be repeated.
#include "weft/data/subword_sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "limited_allocation.h"
#include "subword_text.h"
#include "weft/data/subword_tokenizer.h"
#include "weft/data/subword_trainer.h"

using namespace weft;

namespace {

using Strings = std::vector<std::string>;

std::shared_ptr<const SubwordModel> learned(const char* kind) {
  const Strings lines = syllables(400, 7).source;
  const std::span<const std::string> texts[] = {lines};
  return SubwordModel::load(train_subwords(texts, {kind, 300}), "model");
}

/// How often each segmentation is drawn, of 20000.
std::map<Strings, double> drawn(const SubwordSampler& sampler, const std::string& text, double strength) {
  std::map<Strings, double> shares;
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    Strings tokens;
    sampler.sample(text, strength, random, tokens);
    shares[tokens] += 1.0 / 20000;
  }
  return shares;
}

}  // namespace

TEST_CASE("unigram: a segmentation is drawn in proportion to a power of its probability") {
  SubwordProto model;
  const auto add = [&](const char* text, double p) {
    model.pieces.push_back({text, static_cast<float>(std::log(p)), SubwordType::kNormal});
  };
  add("a", 0.2);
  add("b", 0.1);
  add("c", 0.1);
  add("ab", 0.3);
  add("bc", 0.2);
  add("abc", 0.1);
  model.pieces.push_back({"ca", 0, SubwordType::kUserDefined});  // takes no part
  const SubwordSampler sampler(model);
  for (const double strength : {0.3, 1.0}) {
    const std::map<Strings, double> weights = {{{"a", "b", "c"}, std::pow(0.2 * 0.1 * 0.1, strength)},
                                               {{"ab", "c"}, std::pow(0.3 * 0.1, strength)},
                                               {{"a", "bc"}, std::pow(0.2 * 0.2, strength)},
                                               {{"abc"}, std::pow(0.1, strength)}};
    double sum = 0;
    for (const auto& [tokens, weight] : weights) sum += weight;
    auto shares = drawn(sampler, "abc", strength);
    CHECK(shares.size() == weights.size());
    for (const auto& [tokens, weight] : weights) CHECK(std::abs(shares[tokens] - weight / sum) < 0.015);
  }
  CHECK(drawn(sampler, "aca", 1.0).size() == 1);
}

TEST_CASE("unigram: a long text of long pieces needs no memory for all their places, and is drawn as ever") {
  SubwordProto model;
  for (std::size_t length = 1; length <= 256; ++length) {
    model.pieces.push_back({std::string(length, 'a'), -static_cast<float>(length % 7), SubwordType::kNormal});
  }
  const SubwordSampler sampler(model);
  const std::string text(5000, 'a');
  Strings tokens;
  {
    const LimitedAllocation limit(1 << 20);
    Random random(3);
    sampler.sample(text, 0.2, random, tokens);
  }
  std::string joined, lengths;
  for (const std::string& token : tokens) joined += token, lengths += std::to_string(token.size()) + " ";
  CHECK(joined == text);
  CHECK(lengths.starts_with("1 2 3 1 2 1 1 1 1 1 "));
}

TEST_CASE("bpe: merges are made by rank, and each is left out with the given probability") {
  SubwordProto model;
  model.kind = "bpe";
  float score = 0;
  for (const char* text : {"bc", "ab", "abc", "a", "b", "c"}) {
    model.pieces.push_back({text, score--, SubwordType::kNormal});
  }
  const SubwordSampler sampler(model);
  CHECK(drawn(sampler, "abc", 0) == std::map<Strings, double>{{{"abc"}, drawn(sampler, "abc", 0).begin()->second}});
  CHECK(drawn(sampler, "abc", 1).begin()->first == Strings{"a", "b", "c"});
  // First bc (kept with 0.7), then its merge with a; or, without bc, ab, then its merge with c.
  auto shares = drawn(sampler, "abc", 0.3);
  CHECK(std::abs(shares[{"abc"}] - (0.7 * 0.7 + 0.3 * 0.7 * 0.7)) < 0.015);
  CHECK(std::abs(shares[{"a", "bc"}] - 0.7 * 0.3) < 0.015);
  CHECK(std::abs(shares[{"ab", "c"}] - 0.3 * 0.7 * 0.3) < 0.015);
  CHECK(std::abs(shares[{"a", "b", "c"}] - 0.3 * 0.3) < 0.015);
}

TEST_CASE("what is drawn joins to the same text, and depends on the generator alone") {
  for (const char* kind : {"unigram", "bpe"}) {
    const SubwordTokenizer tokenizer(learned(kind), false);
    int different = 0;
    for (const std::string& line : syllables(100, 9).source) {
      for (const std::string& text : {line, line + " \xE4\xB8\xAD\xE6\x96\x87<s>\xE2\x96\x81" + line}) {
        Random first(3, 4), same(3, 4), other(3, 5);
        const Strings tokens = tokenizer.sample(text, 0.3, first);
        CHECK(tokenizer.join(tokens) == text);
        CHECK(tokenizer.sample(text, 0.3, same) == tokens);
        different += tokenizer.sample(text, 0.3, other) != tokens ? 1 : 0;
      }
    }
    CHECK(different > 100);
  }
}

TEST_CASE("bpe without dropout is SentencePiece's own segmentation; unigram nears it as the exponent grows") {
  for (const char* kind : {"unigram", "bpe"}) {
    const SubwordTokenizer tokenizer(learned(kind), false);
    const double strength = std::string(kind) == "bpe" ? 0 : 1000;
    Random random(1);
    for (const std::string& line : syllables(200, 10).target) {
      CHECK(tokenizer.sample(line, strength, random) == tokenizer.split(line));
    }
  }
}

TEST_CASE("a tokenizer with one way to split draws that") {
  Random random(1);
  CHECK(make_tokenizer("word", false)->sample("a b, c", 0.5, random) == make_tokenizer("word", false)->split("a b, c"));
}

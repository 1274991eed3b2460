// Forced scoring: the same numbers as by hand, as by search, and whatever is scored beside.
#include "weft/train/score.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "small_model.h"
#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/train/evaluate.h"
#include "weft/train/translate.h"

using namespace weft;

namespace {

std::unique_ptr<TranslationModel> wild_model(std::uint64_t seed) {
  auto model = tiny_model(tiny_config());
  perturb(model->parameters(), seed);
  return model;
}

/// log p of each token and </s> by one forward pass over the pair alone.
std::vector<double> by_hand(const TranslationModel& model, const std::string& source, const std::string& target) {
  std::vector<TokenId> ids = model.source_vocabulary().ids(model.source_tokenizer().split(source)), input{kBegin};
  std::vector<TokenId> wanted = model.target_vocabulary().ids(model.target_tokenizer().split(target));
  ids.push_back(kEnd);
  input.insert(input.end(), wanted.begin(), wanted.end());
  wanted.push_back(kEnd);
  const Ragged source_rows = Ragged::of_lengths({static_cast<Index>(ids.size())});
  const Ragged rows = Ragged::of_lengths({static_cast<Index>(input.size())});
  const Transformer& network = model.transformer();
  const Var memory = network.encode(Context{}, ids, source_rows);
  const Tensor logits = network.logits(Context{}, network.decode(Context{}, input, rows, memory, source_rows)).value();
  std::vector<double> result;
  for (Index row = 0; row < logits.rows(); ++row) {
    const auto values = logits.row_range(row, row + 1).values();
    double sum = 0;
    for (const real value : values) sum += std::exp(static_cast<double>(value));
    const auto token = static_cast<std::size_t>(wanted[static_cast<std::size_t>(row)]);
    result.push_back(static_cast<double>(values[token]) - std::log(sum));
  }
  return result;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("each token has the model's log-probability, in whatever batch and with whatever chunks") {
  const auto model = wild_model(2);
  const TranslationModel* const models[] = {model.get()};
  ParallelText text = letters(120, 4, 1, 9);
  text.target = letters(120, 5, 1, 9).source;
  text.target[3] = "a unheard b";
  ScoreSummary summary;
  const auto pairs = score(models, text, {.batch_tokens = 4000});  // more rows than have logits at a time
  REQUIRE(pairs.size() == 120);
  double sum = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    REQUIRE(pairs[i].skipped.empty());
    check_close(pairs[i].log_probabilities, by_hand(*model, text.source[i], text.target[i]));
    CHECK(pairs[i].log_probability ==
          doctest::Approx(std::accumulate(pairs[i].log_probabilities.begin(), pairs[i].log_probabilities.end(), 0.0)));
    CHECK(pairs[i].unknown == (i == 3 ? 1 : 0));
    sum += pairs[i].log_probability;
    summary.add(pairs[i]);
  }
  const auto in_small_batches = score(models, text, {.batch_tokens = 1});
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    check_close(pairs[i].log_probabilities, in_small_batches[i].log_probabilities);
  }
  CHECK(summary.log_probability == doctest::Approx(sum));
  // The corpus perplexity is that of weft evaluate.
  const EncodedCorpus encoded = encode_text(*model, text, 9, "text");
  const LossResult loss = evaluate_loss(*model, encoded.corpus, 500);
  CHECK(summary.pairs == 120);
  CHECK(summary.tokens == loss.tokens);
  CHECK(summary.perplexity() == doctest::Approx(loss.perplexity).epsilon(1e-5));
}

TEST_CASE("a translation's score is what the search gave it") {
  const auto a = wild_model(2), b = wild_model(3);
  const TranslationModel* const models[] = {a.get(), b.get()};
  const auto source = letters(10, 8, 1, 6).source;
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}}) {
    const ModelSpan some = std::span(models).first(count);
    const auto translated = translate(some, source, {.search = {.beam = 3, .length_penalty = 0, .min_length = 1}});
    ParallelText text{source, {}};
    for (const TranslatedLine& line : translated) text.target.push_back(line.translations[0].text);
    const auto pairs = score(some, text);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      CHECK(pairs[i].log_probability == doctest::Approx(translated[i].translations[0].score).epsilon(1e-4));
    }
  }
}

TEST_CASE("several models score by the mean of their probabilities") {
  const auto a = wild_model(2), b = wild_model(3);
  const TranslationModel *const both[] = {a.get(), b.get()}, *const same[] = {a.get(), a.get()};
  const ParallelText text{{"a b c", "d"}, {"c b", "d e f a"}};
  const auto pairs = score(both, text), twice = score(same, text);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto x = by_hand(*a, text.source[i], text.target[i]), y = by_hand(*b, text.source[i], text.target[i]);
    check_close(twice[i].log_probabilities, x);
    std::vector<double> mean;
    for (std::size_t t = 0; t < x.size(); ++t) mean.push_back(std::log((std::exp(x[t]) + std::exp(y[t])) / 2));
    check_close(pairs[i].log_probabilities, mean);
  }
}

TEST_CASE("pairs without a score say why, and keep their place") {
  const auto model = wild_model(2);
  const TranslationModel* const models[] = {model.get()};
  const std::string longest = "a b c d e f a b c";  // nine, as many as the model holds
  const ParallelText text{{"a", " ", "a", longest, longest + " d", "b"},
                          {"a", "a", "\t", longest, "a", longest + " d e"}};
  const auto pairs = score(models, text, {.alignments = true});
  REQUIRE(pairs.size() == 6);
  ScoreSummary summary;
  for (const ScoredPair& pair : pairs) summary.add(pair);
  CHECK(pairs[0].skipped.empty());
  CHECK(pairs[1].skipped == "the source is blank");
  CHECK(pairs[2].skipped == "the target is blank");
  CHECK(pairs[3].skipped.empty());
  CHECK(pairs[3].log_probabilities.size() == 10);
  CHECK(pairs[4].skipped == "the source has 10 tokens; the model holds 9");
  CHECK(pairs[5].skipped == "the target has 11 tokens; the model holds 9");
  CHECK(pairs[5].log_probabilities.empty());
  CHECK(pairs[5].alignment.weights.empty());
  CHECK(pairs[3].alignment.source == 9);
  CHECK(pairs[3].alignment.target == 9);
  CHECK(summary.pairs == 2);
  CHECK(summary.skipped == 4);
  CHECK(summary.tokens == 2 + 10);
  CHECK(std::isnan(ScoreSummary{}.perplexity()));
  CHECK(score(models, ParallelText{{""}, {""}})[0].skipped == "the source is blank");
}

TEST_CASE("a model whose output is not a number has no scores") {
  const auto model = wild_model(2);
  Tensor values = model->parameters().values();
  std::fill(values.values().begin(), values.values().end(), std::numeric_limits<real>::quiet_NaN());
  const TranslationModel* const models[] = {model.get()};
  CHECK_THROWS_SAYING(score(models, ParallelText{{"a b c d e f"}, {"a b c d e f"}}, {}), "not a number", Error);
}

TEST_CASE("what no model thinks possible has the logarithm of 0") {
  const auto model = wild_model(2);
  for (const ParameterEntry& entry : model->parameters().entries()) {
    Tensor value = model->parameters().value(entry);
    if (entry.name == "output.bias") value.data()[kEnd + 1] = -std::numeric_limits<real>::infinity();
  }
  const std::string never = model->target_vocabulary().token(kEnd + 1);
  const TranslationModel *const one[] = {model.get()}, *const same[] = {model.get(), model.get()};
  for (const ModelSpan models : {ModelSpan(one), ModelSpan(same)}) {
    const auto pair = score(models, ParallelText{{"a b"}, {never}}).at(0);
    CHECK(pair.log_probability == -std::numeric_limits<double>::infinity());
  }
}

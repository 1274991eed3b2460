// What planning the batches of an epoch takes, and measuring an update.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <vector>

#include "sanitizers.h"
#include "tiny_run.h"
#include "weft/core/random.h"
#include "weft/data/batch.h"
#include "weft/train/memory_forecast.h"
#include "weft/train/time_budget.h"

using namespace weft;

namespace {

/// Pairs of a token each.
Corpus shortest_pairs(Index pairs) {
  Corpus corpus;
  for (Index i = 0; i < pairs; ++i) {
    corpus.source.append(std::vector<TokenId>(1, kEnd));
    corpus.target.append(std::vector<TokenId>(1, kEnd));
    corpus.line.push_back(i);
  }
  return corpus;
}

}  // namespace

TEST_CASE("the batches of an epoch, one at a time, are those of its plan") {
  Corpus corpus;
  Random random(5, random_site("lengths"));
  for (Index i = 0; i < 3000; ++i) {
    corpus.source.append(std::vector<TokenId>(random.below(20), kEnd));
    corpus.target.append(std::vector<TokenId>(random.below(20), kEnd));
    corpus.line.push_back(i);
  }
  for (const Index tokens : {1, 50, 1'000'000}) {
    const BatchPlan plan(corpus, tokens, 1);
    std::vector<std::vector<Index>> batches, whole = plan.epoch(3);
    plan.each_batch(3, [&](std::span<const Index> batch) { batches.emplace_back(batch.begin(), batch.end()); });
    std::sort(batches.begin(), batches.end());
    std::sort(whole.begin(), whole.end());
    CHECK(batches == whole);
  }
}

#ifndef WEFT_SANITIZED
TEST_CASE("looking at batches of very many short pairs takes no more than planning an epoch, which is foreseen") {
  constexpr Index kPairs = 400'000;
  const auto model = tiny_model(tiny_config({"training.steps=1000000"}));
  const Corpus train = shortest_pairs(kPairs);
  const auto taken = [](const auto& work) {  // at its peak
    const Index before = settled_memory().now;
    std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // the peak begins anew
    work();
    return resident_memory().peak - before;
  };
  const Index foreseen = text_bytes(*model, train, 1e9, 1000);
  for (const Index tokens : {1, 10, 1000}) CHECK(taken([&] { training_batches(*model, train, tokens); }) < foreseen);
  for (const Index tokens : {1000, 1'000'000}) {
    CAPTURE(tokens);
    const Index planned = taken([&] { BatchPlan(train, tokens, 1).epoch(1); });
    CHECK(planned < foreseen * 11 / 10);
    CHECK(planned > foreseen / 2);
  }
}

TEST_CASE("measuring takes no copy of the parameters") {
  const auto model = tiny_model(tiny_config(
      {"model.max_length=100000", "model.positions=learned", "optimizer.name=sgd", "optimizer.momentum=0"}));
  const TrainingData data = tiny_data(*model, letters(60, 5), letters(10, 6));
  const Index bytes = model->parameters().values().size() * static_cast<Index>(sizeof(real));
  measure_update(*model, data.train, 0);
  const Index before = settled_memory().now;
  std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // the peak begins anew
  measure_update(*model, data.train, 0);
  CHECK(bytes > 10'000'000);
  CHECK(resident_memory().peak - before < bytes / 2);
}
#endif

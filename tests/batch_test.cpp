// Packed batches and their plans: every sentence once, within the budget, alike in length, the same for the
// same seed.
#include "weft/data/batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/random.h"

using namespace weft;
using Ids = std::vector<TokenId>;
using Batches = std::vector<std::vector<Index>>;

namespace {

// A corpus of sentences with random lengths from 1 to `longest`.
Corpus random_corpus(Index pairs, std::uint64_t longest) {
  Corpus corpus;
  Random random(5);
  for (Index i = 0; i < pairs; ++i) {
    corpus.source.append(Ids(1 + random.below(longest), 3));
    corpus.target.append(Ids(1 + random.below(longest), 4));
    corpus.line.push_back(i);
  }
  return corpus;
}

Index cost(const Corpus& corpus, const std::vector<Index>& batch) {
  Index sum = 0;
  for (const Index i : batch) sum += corpus.source.length(i) + corpus.target.length(i) + 2;
  return sum;
}

// Checks that each of `count` sentences is in exactly one batch and no batch is empty.
void check_each_once(const Batches& batches, Index count) {
  std::vector<Index> all;
  for (const auto& batch : batches) {
    CHECK(!batch.empty());
    all.insert(all.end(), batch.begin(), batch.end());
  }
  std::sort(all.begin(), all.end());
  REQUIRE(static_cast<Index>(all.size()) == count);
  for (Index i = 0; i < count; ++i) REQUIRE(all[static_cast<std::size_t>(i)] == i);
}

}  // namespace

TEST_CASE("make_batch lays sentences end to end and shifts the target right") {
  Corpus corpus;
  corpus.source.append(Ids{5, 6});
  corpus.target.append(Ids{7, 8, 9});
  corpus.source.append(Ids{4});
  corpus.target.append(Ids{3});
  corpus.line = {0, 1};
  const Batch batch = make_batch(corpus, std::vector<Index>{1, 0});
  CHECK(batch.source == Ids{4, kEnd, 5, 6, kEnd});
  CHECK(batch.source_rows.offsets() == std::vector<Index>{0, 2, 5});
  CHECK(batch.decoder_input == Ids{kBegin, 3, kBegin, 7, 8, 9});
  CHECK(batch.target == Ids{3, kEnd, 7, 8, 9, kEnd});
  CHECK(batch.target_rows.offsets() == std::vector<Index>{0, 2, 6});
  CHECK(batch.sentences == std::vector<Index>{1, 0});

  corpus.source.append(Ids{});
  const Batch sources = make_source_batch(corpus.source, std::vector<Index>{2, 1});
  CHECK(sources.source == Ids{kEnd, 4, kEnd});
  CHECK(sources.source_rows.offsets() == std::vector<Index>{0, 1, 3});
  CHECK(sources.target.empty());
  CHECK(sources.target_rows.sequences() == 0);
}

TEST_CASE("an epoch has every pair once, in batches within the budget that are nearly full and alike in length") {
  const Corpus corpus = random_corpus(20000, 40);
  const BatchPlan plan(corpus, 500, 1);
  for (const Index epoch : {0, 1, 7}) {
    const Batches batches = plan.epoch(epoch);
    check_each_once(batches, corpus.size());
    Index total = 0, not_full = 0, spread = 0;
    for (const auto& batch : batches) {
      CHECK(cost(corpus, batch) <= 500);
      total += cost(corpus, batch);
      if (cost(corpus, batch) < 500 - 82) ++not_full;
      const auto [low, high] = std::minmax_element(batch.begin(), batch.end(), [&](Index a, Index b) {
        return corpus.target.length(a) < corpus.target.length(b);
      });
      spread += corpus.target.length(*high) - corpus.target.length(*low);
    }
    CHECK(not_full <= 1);
    CHECK(static_cast<Index>(batches.size()) < total / 500 * 27 / 25);
    CHECK(spread < 2 * static_cast<Index>(batches.size()));
  }
}

TEST_CASE("an epoch depends on seed and epoch alone, and differs from others in order and in content") {
  const Corpus corpus = random_corpus(3000, 20);
  const BatchPlan plan(corpus, 400, 1);
  const Batches third = plan.epoch(3);
  CHECK(third == BatchPlan(corpus, 400, 1).epoch(3));
  CHECK(third != BatchPlan(corpus, 400, 2).epoch(3));
  const auto sorted = [](Batches batches) {
    for (auto& batch : batches) std::sort(batch.begin(), batch.end());
    std::sort(batches.begin(), batches.end());
    return batches;
  };
  CHECK(sorted(third) != sorted(plan.epoch(4)));
  // Batches do not come by length.
  CHECK(!std::is_sorted(third.begin(), third.end(), [&](const auto& a, const auto& b) {
    return corpus.target.length(a[0]) < corpus.target.length(b[0]);
  }));
}

TEST_CASE("the order of an epoch is pinned: the same on every machine") {
  CHECK(BatchPlan(random_corpus(8, 3), 14, 1).epoch(0) == Batches{{5, 0}, {1, 4}, {2, 3}, {7, 6}});
}

TEST_CASE("fewer pairs than a batch make one batch; a pair over the budget is alone; nothing is an error") {
  CHECK(BatchPlan(random_corpus(1, 5), 4096, 1).epoch(0) == Batches{{0}});
  check_each_once(BatchPlan(random_corpus(3, 5), 4096, 1).epoch(0), 3);
  for (const Index budget : {1, 2, 11, 400}) {
    Corpus corpus = random_corpus(50, 4);
    corpus.source.append(Ids(300, 3));
    corpus.target.append(Ids(300, 3));
    corpus.line.push_back(50);
    const Batches batches = BatchPlan(corpus, budget, 1).epoch(0);
    check_each_once(batches, 51);
    for (const auto& batch : batches) CHECK((batch.size() == 1 || cost(corpus, batch) <= budget));
  }
  CHECK_THROWS_AS(BatchPlan(Corpus(), 10, 1), DataError);
  CHECK_THROWS_AS(BatchPlan(random_corpus(1, 5), 0, 1), ConfigError);
}

TEST_CASE("batches_by_length goes by length, ties in order, within the budget") {
  const Corpus corpus = random_corpus(500, 6);
  const Batches batches = batches_by_length(corpus, 60);
  check_each_once(batches, corpus.size());
  std::vector<Index> order;
  for (const auto& batch : batches) {
    CHECK(cost(corpus, batch) <= 60);
    order.insert(order.end(), batch.begin(), batch.end());
  }
  CHECK(std::is_sorted(order.begin(), order.end(), [&](Index a, Index b) {
    const auto key = [&](Index i) { return std::array{corpus.target.length(i), corpus.source.length(i), i}; };
    return key(a) < key(b);
  }));

  EncodedText source;
  for (const std::size_t length : {3u, 1u, 9u, 1u, 0u}) source.append(Ids(length, 3));
  CHECK(batches_by_length(source, 5) == Batches{{4, 1, 3}, {0}, {2}});
  CHECK(batches_by_length(EncodedText(), 5).empty());
  CHECK_THROWS_AS(batches_by_length(source, 0), ConfigError);
  CHECK_THROWS_AS(batches_by_length(corpus, 0), ConfigError);
}

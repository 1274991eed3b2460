#include "weft/data/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/random.h"

namespace weft {
namespace {

// Enough for batches of nearly equal lengths, few enough that each pool is another mixture.
constexpr Index kPoolBatches = 100;

using Batches = std::vector<std::vector<Index>>;

void check_batch_tokens(Index batch_tokens) {
  if (batch_tokens < 1) throw ConfigError(fmt::format("batch_tokens is {}; use 1 or more", batch_tokens));
}

// Cuts sentences, in their order, into batches of at most `batch_tokens`; a sentence that costs more is
// alone.
template <class Cost>
Batches cut(std::span<const Index> order, Index batch_tokens, Cost cost) {
  Batches batches;
  Index used = 0;
  for (const Index sentence : order) {
    const Index added = cost(sentence);
    if (batches.empty() || used + added > batch_tokens) {
      batches.emplace_back();
      used = 0;
    }
    batches.back().push_back(sentence);
    used += added;
  }
  return batches;
}

std::vector<Index> all_sentences(Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  return order;
}

void append_source(std::span<const TokenId> sentence, Batch& batch) {
  batch.source.insert(batch.source.end(), sentence.begin(), sentence.end());
  batch.source.push_back(kEnd);
  batch.source_rows.append(static_cast<Index>(sentence.size()) + 1);
}

void append_target(std::span<const TokenId> sentence, Batch& batch) {
  batch.decoder_input.push_back(kBegin);
  batch.decoder_input.insert(batch.decoder_input.end(), sentence.begin(), sentence.end());
  batch.target.insert(batch.target.end(), sentence.begin(), sentence.end());
  batch.target.push_back(kEnd);
  batch.target_rows.append(static_cast<Index>(sentence.size()) + 1);
}

}  // namespace

Batch make_batch(const Corpus& corpus, std::span<const Index> sentences) {
  Batch batch = make_source_batch(corpus.source, sentences);
  for (const Index sentence : sentences) append_target(corpus.target[sentence], batch);
  return batch;
}

Batch make_source_batch(const EncodedText& source, std::span<const Index> sentences) {
  Batch batch;
  for (const Index sentence : sentences) append_source(source[sentence], batch);
  batch.sentences.assign(sentences.begin(), sentences.end());
  return batch;
}

BatchPlan::BatchPlan(const Corpus& corpus, Index batch_tokens, std::uint64_t seed)
    : batch_tokens_(batch_tokens), seed_(seed) {
  check_batch_tokens(batch_tokens);
  if (corpus.size() == 0) throw DataError("cannot plan batches of a corpus without sentence pairs");
  lengths_.reserve(static_cast<std::size_t>(corpus.size()));
  for (Index i = 0; i < corpus.size(); ++i) {
    lengths_.push_back(
        {static_cast<std::int32_t>(corpus.target.length(i)), static_cast<std::int32_t>(corpus.source.length(i))});
  }
}

std::vector<std::vector<Index>> BatchPlan::epoch(Index number) const {
  const auto lengths = [this](Index i) { return lengths_[static_cast<std::size_t>(i)]; };
  const auto cost = [&](Index i) { return Index{lengths(i).target} + lengths(i).source + 2; };
  const auto shorter = [&](Index a, Index b) {
    const Lengths left = lengths(a), right = lengths(b);
    return left.target != right.target ? left.target < right.target : left.source < right.source;
  };
  Random random(seed_, random_site("batch plan") + static_cast<std::uint64_t>(number));
  auto order = all_sentences(static_cast<Index>(lengths_.size()));
  random.shuffle(order);

  Batches batches;
  std::vector<Index> pool;
  for (std::size_t next = 0; next < order.size();) {
    for (Index pool_tokens = 0; next < order.size() && pool_tokens / kPoolBatches < batch_tokens_; ++next) {
      pool.push_back(order[next]);
      pool_tokens += cost(order[next]);
    }
    std::stable_sort(pool.begin(), pool.end(), shorter);
    Batches cuts = cut(pool, batch_tokens_, cost);
    pool.clear();
    if (next < order.size()) {  // the last batch has room: it goes on in the next pool
      pool = std::move(cuts.back());
      cuts.pop_back();
    }
    std::move(cuts.begin(), cuts.end(), std::back_inserter(batches));
  }
  random.shuffle(batches);
  return batches;
}

std::vector<std::vector<Index>> batches_by_length(const Corpus& corpus, Index batch_tokens) {
  check_batch_tokens(batch_tokens);
  auto order = all_sentences(corpus.size());
  std::stable_sort(order.begin(), order.end(), [&corpus](Index a, Index b) {
    return std::pair(corpus.target.length(a), corpus.source.length(a)) <
           std::pair(corpus.target.length(b), corpus.source.length(b));
  });
  return cut(order, batch_tokens, [&](Index i) { return corpus.source.length(i) + corpus.target.length(i) + 2; });
}

std::vector<std::vector<Index>> batches_by_length(const EncodedText& source, Index batch_tokens) {
  check_batch_tokens(batch_tokens);
  auto order = all_sentences(source.sentences());
  std::stable_sort(order.begin(), order.end(),
                   [&source](Index a, Index b) { return source.length(a) < source.length(b); });
  return cut(order, batch_tokens, [&](Index i) { return source.length(i) + 1; });
}

}  // namespace weft

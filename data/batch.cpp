#include "weft/data/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "weft/core/error.h"

namespace weft {
namespace {

// Enough for batches of nearly equal lengths, few enough that each pool is another mixture.
constexpr Index kPoolBatches = 100;

using Batches = std::vector<std::vector<Index>>;

void check_batch_tokens(Index batch_tokens) {
  if (batch_tokens < 1) throw ConfigError(fmt::format("batch_tokens is {}; use 1 or more", batch_tokens));
}

// Cuts sentences, in their order, into batches of at most `batch_tokens`, each of which is given to `take`; a sentence that
// costs more is alone. The last batch, which may have room, is left: its place in `order` is returned.
template <class Cost>
std::size_t cut(std::span<const Index> order, Index batch_tokens, Cost cost,
                FunctionRef<void(std::span<const Index>)> take) {
  std::size_t begin = 0;
  Index used = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Index added = cost(order[i]);
    if (i > begin && used + added > batch_tokens) {
      take(order.subspan(begin, i - begin));
      begin = i;
      used = 0;
    }
    used += added;
  }
  return begin;
}

// All batches of sentences in that order.
template <class Cost>
Batches cut_all(std::span<const Index> order, Index batch_tokens, Cost cost) {
  Batches batches;
  const auto append = [&](std::span<const Index> batch) { batches.emplace_back(batch.begin(), batch.end()); };
  const std::size_t last = cut(order, batch_tokens, cost, append);
  if (last < order.size()) append(order.subspan(last));
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

void BatchPlan::cut_epoch(Random& random, FunctionRef<void(std::span<const Index>)> take) const {
  const auto lengths = [this](Index i) { return lengths_[static_cast<std::size_t>(i)]; };
  const auto cost = [&](Index i) { return Index{lengths(i).target} + lengths(i).source + 2; };
  const auto shorter = [&](Index a, Index b) {
    const Lengths left = lengths(a), right = lengths(b);
    return left.target != right.target ? left.target < right.target : left.source < right.source;
  };
  auto order = all_sentences(static_cast<Index>(lengths_.size()));
  random.shuffle(order);
  for (std::size_t begin = 0, next = 0; next < order.size();) {
    Index pool_tokens = 0;
    for (; next < order.size() && pool_tokens / kPoolBatches < batch_tokens_; ++next) pool_tokens += cost(order[next]);
    const std::span<Index> pool(order.data() + begin, next - begin);
    std::stable_sort(pool.begin(), pool.end(), shorter);
    begin += cut(pool, batch_tokens_, cost, take);  // the last batch has room: it goes on in the next pool
    if (next == order.size()) take(std::span(order).subspan(begin));
  }
}

std::vector<std::vector<Index>> BatchPlan::epoch(Index number) const {
  Random random = random_of(number);
  Batches batches;
  cut_epoch(random, [&](std::span<const Index> batch) { batches.emplace_back(batch.begin(), batch.end()); });
  random.shuffle(batches);
  return batches;
}

void BatchPlan::each_batch(Index number, FunctionRef<void(std::span<const Index>)> take) const {
  Random random = random_of(number);
  cut_epoch(random, take);
}

Random BatchPlan::random_of(Index number) const {
  return Random(seed_, random_site("batch plan") + static_cast<std::uint64_t>(number));
}

std::vector<std::vector<Index>> batches_by_length(const Corpus& corpus, Index batch_tokens) {
  check_batch_tokens(batch_tokens);
  auto order = all_sentences(corpus.size());
  std::stable_sort(order.begin(), order.end(), [&corpus](Index a, Index b) {
    return std::pair(corpus.target.length(a), corpus.source.length(a)) <
           std::pair(corpus.target.length(b), corpus.source.length(b));
  });
  return cut_all(order, batch_tokens, [&](Index i) { return corpus.source.length(i) + corpus.target.length(i) + 2; });
}

std::vector<std::vector<Index>> batches_by_length(const EncodedText& source, Index batch_tokens) {
  check_batch_tokens(batch_tokens);
  auto order = all_sentences(source.sentences());
  std::stable_sort(order.begin(), order.end(),
                   [&source](Index a, Index b) { return source.length(a) < source.length(b); });
  return cut_all(order, batch_tokens, [&](Index i) { return source.length(i) + 1; });
}

}  // namespace weft

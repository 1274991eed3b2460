#include "weft/nn/layer_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/core/gemm.h"
#include "weft/core/memory.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
#ifdef WEFT_VECTOR_GEMM
constexpr double kOtherRows = 0;  // how much other rows may change a row: not by a bit
#else
constexpr double kOtherRows = kRounding;  // OpenBLAS may sum in another order for another number of rows
#endif

bool finite(const Tensor& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](real value) { return std::isfinite(value); });
}

/// A batch that is cut into several tiles.
LayerBatch large_batch(const LayerToCheck& layer) {
  const Index rows = std::max<Index>(200, 12'000 / layer.options.d_model);
  std::vector<Index> lengths, memory_lengths;
  for (Index i = 0, all = 0; all < rows; all += std::min(lengths.back(), layer.options.max_length), ++i) {
    lengths.push_back(i % 8 == 1 ? kLongSentence : 3 + i * 7 % 29);
    memory_lengths.push_back(i % 8 == 2 ? kLongSentence : 2 + i * 5 % 23);
  }
  return layer.batch(lengths, memory_lengths, 21);
}

/// Sets the number of threads, and at the end what it was.
class ThreadCount {
 public:
  ThreadCount() : before_(threads()) {}
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() { set_threads(before_); }

 private:
  int before_;
};

}  // namespace

LayerBatch LayerToCheck::batch(std::vector<Index> lengths, std::vector<Index> memory_lengths, std::uint64_t seed,
                               double scale) const {
  for (Index& length : lengths) length = std::min(length, options.max_length);
  for (Index& length : memory_lengths) length = std::min(length, options.max_length);
  return random_batch(options.d_model, lengths, memory_lengths, seed, scale);
}

void Finding::see(double figure, double most, const std::string& where) {
  ++count;
  if (std::isnan(figure)) figure = kInfinity;
  if (passed) allowed = most;
  if (figure > most && passed) passed = false, place = where;
  worst = std::max(worst, figure);
}

double difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return kInfinity;
  if (a.size() == 0 || std::memcmp(a.data(), b.data(), a.values().size_bytes()) == 0) return 0;
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const auto one = static_cast<double>(a.values()[i]), other = static_cast<double>(b.values()[i]);
    worst = std::max(worst, std::isfinite(one - other) ? std::abs(one - other) : kInfinity);
    largest = std::max({largest, std::abs(one), std::abs(other)});
  }
  return std::max(worst == kInfinity ? worst : worst / largest, std::numeric_limits<double>::min());
}

double difference(const LayerPass& a, const LayerPass& b) {
  double worst = difference(a.result, b.result);
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    worst = std::max(worst, difference(a.gradients[i], b.gradients[i]));
  }
  return worst;
}

void check_batches(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  std::vector<LayerBatch> sentences;
  const Index lengths[] = {1, 5, 2, kLongSentence, 0, 17, 3}, memory_lengths[] = {4, 1, kLongSentence, 2, 3, 11, 0};
  for (std::size_t s = 0; s < std::size(lengths); ++s) {
    sentences.push_back(layer.batch({lengths[s]}, {memory_lengths[s]}, 30 + s));
  }
  std::vector<std::vector<std::size_t>> orders{{}, {}, {3, 3, 3}, {4, 0}, {0, 6}};
  for (std::size_t s = 0; s < sentences.size(); ++s) orders[0].push_back(s), orders[1].insert(orders[1].begin(), s);
  Random random(11);
  for (int i = 0; i < 4; ++i) {  // some twice or more, so that batches of several sizes come up
    orders.emplace_back();
    for (int k = 0; k < 4 << i; ++k) orders.back().push_back(static_cast<std::size_t>(random.below(sentences.size())));
  }
  for (const bool taped : {false, true}) {
    const auto run = [&](const LayerBatch& batch) {
      return taped ? trial.pass(batch, Tensor::zeros(batch.x.shape()), false).result : trial({}, batch);
    };
    std::vector<Tensor> alone;
    for (const LayerBatch& sentence : sentences) alone.push_back(run(sentence));
    for (const std::vector<std::size_t>& order : orders) {
      const LayerBatch batch = together(sentences, order);
      const Tensor all = run(batch);
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto s = static_cast<Index>(i);
        finding.see(difference(all.row_range(batch.rows.begin(s), batch.rows.end(s)), alone[order[i]]), kOtherRows,
                    fmt::format("a sentence of {} rows, number {} of {}, {}", batch.rows.length(s), i + 1, order.size(),
                                taped ? "on a tape" : "without a tape"));
      }
    }
  }
}

void check_causality(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  const std::vector<Index> lengths{kLongSentence, 1, 9}, memory_lengths{3, 1, 5};
  const LayerBatch batch = layer.batch(lengths, memory_lengths, 41);
  const Index longest = batch.rows.length(0);
  for (const bool taped : {false, true}) {
    const auto run = [&](const LayerBatch& one) {
      return taped ? trial.pass(one, Tensor::zeros(one.x.shape()), false).result : trial({}, one);
    };
    const Tensor whole = run(batch);
    for (Index last = 0; last < longest; ++last) {
      if (!stops_at(last, longest)) continue;
      LayerBatch other = layer.batch(lengths, memory_lengths, 42), cut;
      other.memory = batch.memory;
      cut.memory = batch.memory, cut.memory_rows = batch.memory_rows;
      std::vector<Index> kept;
      for (Index s = 0; s < batch.rows.sequences(); ++s) kept.push_back(std::min(batch.rows.length(s), last + 1));
      cut.rows = Ragged::of_lengths(kept);
      cut.x = Tensor({cut.rows.rows(), layer.options.d_model});
      for (Index s = 0; s < batch.rows.sequences(); ++s) {
        const Index begin = batch.rows.begin(s), end = begin + cut.rows.length(s);
        const Tensor rows = batch.x.row_range(begin, end);
        std::copy(rows.values().begin(), rows.values().end(), other.x.row_range(begin, end).data());
        std::copy(rows.values().begin(), rows.values().end(),
                  cut.x.row_range(cut.rows.begin(s), cut.rows.end(s)).data());
      }
      const Tensor changed = run(other), shortened = run(cut);
      for (Index s = 0; s < batch.rows.sequences(); ++s) {
        const Index begin = batch.rows.begin(s), end = begin + cut.rows.length(s);
        const Tensor expected = whole.row_range(begin, end);
        const std::string where =
            fmt::format("rows up to {} of a sentence of {}, later ones ", last + 1, batch.rows.length(s));
        finding.see(difference(changed.row_range(begin, end), expected), 0, where + "changed");
        finding.see(difference(shortened.row_range(cut.rows.begin(s), cut.rows.end(s)), expected), kRounding,
                    where + "cut off");
      }
    }
  }
}

void check_threads(const LayerToCheck& layer, Finding& finding) {
  const ThreadCount restored;
  LayerTrial trial = layer.make();
  const LayerBatch batch = large_batch(layer);
  const Tensor gradient = random_rows(batch.x.shape(), 61);
  set_threads(1);
  const LayerPass one = trial.pass(batch, gradient, true, kStepRandom);
  const Tensor translating = trial({}, batch);
  for (const int count : {2, 3, 8}) {
    set_threads(count);
    finding.see(difference(trial.pass(batch, gradient, true, kStepRandom), one), 0,
                fmt::format("forward and backward with {} threads", count));
    finding.see(difference(trial({}, batch), translating), 0, fmt::format("without a tape, with {} threads", count));
  }
}

void check_tape(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  const LayerBatch batch = large_batch(layer);
  for (const bool training : {false, true}) {
    Context context;
    context.training = training;
    context.random = kStepRandom;
    const Tensor recorded = trial.pass(batch, random_rows(batch.x.shape(), 61), training, kStepRandom).result;
    finding.see(difference(trial(context, batch), recorded), kRounding, training ? "in training" : "not in training");
  }
}

void check_randomness(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  const LayerBatch batch = layer.batch({kLongSentence, 1, 4}, {2, kLongSentence, 1}, 81);
  const Tensor gradient = random_rows(batch.x.shape(), 82);
  Context first, second;
  first.random = {1, 5}, second.random = {2, 6};
  const Tensor translated = trial(first, batch);
  const LayerPass trained = trial.pass(batch, gradient, true, kStepRandom);
  trial.pass(batch, gradient, true, {1, 1});
  finding.see(difference(trial.pass(batch, gradient, true, kStepRandom), trained), 0,
              "a step of training done twice with the same random numbers");
  finding.see(difference(trial(first, batch), translated), 0, "the same pass twice, not in training");
  finding.see(difference(trial(second, batch), translated), 0, "other random numbers, not in training");
}

void check_memory(const LayerToCheck& layer, Finding& finding) {
  const ThreadCount restored;
  set_threads(1);  // with more, which of them first needs memory of its own, and when, is chance
  LayerTrial trial = layer.make();
  const LayerBatch batch = large_batch(layer);
  const Tensor gradient = random_rows(batch.x.shape(), 91);
  for (std::uint64_t step = 0; step < 2; ++step) trial.pass(batch, gradient, true, {1, step});
  const Index before = memory_statistics().heap_allocations, held = memory_statistics().current_bytes;
  trial.pass(batch, gradient, true, {1, 2});
  finding.see(static_cast<double>(memory_statistics().heap_allocations - before), 0, "blocks from the heap in step 3");
  finding.see(static_cast<double>(memory_statistics().current_bytes - held), 0, "bytes held after step 3");
}

void check_odd_input(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  const auto check = [&](const char* what, const std::vector<Index>& lengths, const std::vector<Index>& memory_lengths,
                         double scale) {
    const LayerBatch batch = layer.batch(lengths, memory_lengths, 95, scale);
    const LayerPass pass = trial.pass(batch, random_rows(batch.x.shape(), 96), true, kStepRandom);
    finding.see(finite(trial({}, batch)) && finite(pass.result) ? 0 : 1, 0, fmt::format("{}: the result", what));
    for (const Tensor& gradient : pass.gradients) {
      finding.see(finite(gradient) ? 0 : 1, 0, fmt::format("{}: a gradient", what));
    }
  };
  check("empty sentences", {0, 3, 0, 1, 0}, {2, 0, 0, 3, 1}, 1);
  check("a batch of one empty sentence", {0}, {0}, 1);
  check("one row", {1}, {1}, 1);
  check("a sentence as long as may be, up to 2,048 rows", {kLongestSentence, 1}, {kLongestSentence, 1}, 1);
  check("rows of zeros", {3, 1}, {2, 2}, 0);
  check("values up to 10,000", {3, 1}, {2, 2}, 1e4);
  check("values below 1e-20", {3, 1}, {2, 2}, 1e-20);
}

}  // namespace weft

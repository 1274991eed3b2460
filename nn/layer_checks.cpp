#include "weft/nn/layer_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "weft/core/memory.h"
#include "weft/core/safetensors_header.h"  // printable
#include "weft/core/threads.h"
#include "weft/nn/decode_state.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool finite(const Tensor& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](real value) { return std::isfinite(value); });
}

/// Attention weights that are asked for change nothing, and are there for each sentence or not at all.
void check_attention(const LayerTrial& trial, const LayerBatch& batch, Finding& finding) {
  AttentionRecord record;
  Context context;
  context.attention = &record;
  finding.see(difference(trial(context, batch), trial({}, batch)), kRounding, "with attention weights asked for");
  for (const auto& [module, weights] : record) {
    // The last is that of the memory; a layer may show its other attention before.
    const bool is_last = &module == &record.back().first;
    bool right = static_cast<Index>(weights.size()) == batch.rows.sequences();
    for (std::size_t i = 0; right && i < weights.size(); ++i) {
      const auto s = static_cast<Index>(i);
      const Shape shape = weights[i].defined() ? weights[i].shape() : Shape{};
      right = shape.rank() == 3 && shape[0] > 0 && shape[1] == batch.rows.length(s) &&
              (!is_last || shape[2] == batch.memory_rows.length(s)) && finite(weights[i]);
    }
    finding.see(right ? 0 : kInfinity, 0,
                fmt::format("attention weights of {}: not finite [heads, rows, memory rows] for each of {} sentences",
                            printable(module), batch.rows.sequences()));
  }
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

LayerBatch LayerToCheck::large_batch(std::uint64_t seed) const {
  const Index rows = std::max<Index>(200, 12'000 / options.d_model);
  std::vector<Index> lengths, memory_lengths;
  for (Index i = 0, all = 0; all < rows; all += std::min(lengths.back(), options.max_length), ++i) {
    lengths.push_back(i % 8 == 1 ? kLongSentence : 3 + i * 7 % 29);
    memory_lengths.push_back(i % 8 == 2 ? kLongSentence : 2 + i * 5 % 23);
  }
  return batch(lengths, memory_lengths, seed);
}

LayerToCheck LayerToCheck::without_dropout() const {
  LayerToCheck other = *this;
  other.options.dropout = other.options.attention_dropout = other.options.activation_dropout = 0;
  return other;
}

void Finding::see(double figure, double most, const std::string& where) {
  ++count;
  if (std::isnan(figure)) figure = kInfinity;
  if (passed) allowed = figure > most ? most : std::max(allowed, most);
  if (figure > most && passed) passed = false, place = where;
  worst = std::max(worst, figure);
}

void Finding::add(const Finding& other) {
  count += other.count;
  if (passed) allowed = other.passed ? std::max(allowed, other.allowed) : other.allowed;
  if (passed) place = other.place, passed = other.passed;
  worst = std::max(worst, other.worst);
}

void see_with_any_input(Finding& finding, const std::function<void(std::uint64_t, Finding&)>& compare) {
  constexpr std::uint64_t kInputs = 4;
  Finding best;
  for (std::uint64_t seed = 1; seed <= kInputs; ++seed) {
    Finding one;
    compare(seed, one);
    if (seed == 1 || one.passed || one.worst < best.worst) best = one;
    if (best.passed) break;
  }
  finding.add(best);
}

double difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return kInfinity;
  if (a.size() == 0 || std::memcmp(a.data(), b.data(), a.values().size_bytes()) == 0) return 0;
  double differences = 0, values = 0;  // squares
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const auto one = static_cast<double>(a.values()[i]), other = static_cast<double>(b.values()[i]);
    if (!std::isfinite(one - other)) return kInfinity;
    differences += (one - other) * (one - other);
    values += std::max(one * one, other * other);
  }
  const double share = values > 0 ? std::sqrt(differences / values) : 0;
  return std::max(share, std::numeric_limits<double>::min());
}

double difference(const LayerPass& a, const LayerPass& b) {
  double worst = difference(a.result, b.result);
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    worst = std::max(worst, difference(a.gradients[i], b.gradients[i]));
  }
  return worst;
}

void check_threads(const LayerToCheck& layer, Finding& finding) {
  const ThreadCount restored;
  LayerTrial trial = layer.make();
  const LayerBatch batch = layer.large_batch(21);
  const Tensor gradient = random_rows(batch.x.shape(), 61);
  set_threads(1);
  const LayerPass one = trial.pass(batch, gradient, true, kStepRandom);
  const Tensor translating = trial({}, batch);
  const bool decodes = layer.options.causal && trial.incremental();
  const Tensor by_positions = decodes ? decoded(trial, batch) : Tensor();
  for (const int count : {2, 3, 8}) {
    set_threads(count);
    finding.see(difference(trial.pass(batch, gradient, true, kStepRandom), one), 0,
                fmt::format("forward and backward with {} threads", count));
    finding.see(difference(trial({}, batch), translating), 0, fmt::format("without a tape, with {} threads", count));
    if (!decodes) continue;
    finding.see(difference(decoded(trial, batch), by_positions), 0, fmt::format("decoding, with {} threads", count));
  }
}

void check_tape(const LayerToCheck& layer, Finding& finding) {
  LayerTrial trial = layer.make();
  if (trial.crosses()) check_attention(trial, layer.batch({3, 1, kLongSentence}, {2, kLongSentence, 4}, 20), finding);
  for (const bool training : {false, true}) {
    see_with_any_input(finding, [&](std::uint64_t seed, Finding& one) {
      const LayerBatch batch = layer.large_batch(20 + seed);
      Context context;
      context.training = training;
      context.random = kStepRandom;
      const Tensor recorded = trial.pass(batch, random_rows(batch.x.shape(), 61), training, kStepRandom).result;
      one.see(difference(trial(context, batch), recorded), kRounding, training ? "in training" : "not in training");
    });
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
  const LayerBatch batch = layer.large_batch(21);
  const Tensor gradient = random_rows(batch.x.shape(), 91);
  const auto check = [&](const char* what, const auto& step) {
    step(), step();
    const Index before = memory_statistics().heap_allocations, held = memory_statistics().current_bytes;
    step();
    finding.see(static_cast<double>(memory_statistics().heap_allocations - before), 0,
                fmt::format("tensors from the heap in {} 3", what));
    finding.see(static_cast<double>(memory_statistics().current_bytes - held), 0,
                fmt::format("bytes held after {} 3", what));
  };
  // With the same random numbers in all three, as chance may leave out a part of the layer.
  for (std::uint64_t address = 0; address < 3; ++address) {
    check("step", [&] { trial.pass(batch, gradient, true, {1, address}); });
  }
  check("pass without a tape", [&] { trial({}, batch); });
  if (!layer.options.causal || !trial.incremental()) return;
  const std::vector<Index> one_each(static_cast<std::size_t>(batch.rows.sequences()), 1);
  const std::vector<TokenId> tokens(one_each.size(), 3);
  std::vector<Index> parents(one_each.size());
  std::iota(parents.begin(), parents.end(), Index{0});
  const Tensor x = random_rows({batch.rows.sequences(), layer.options.d_model}, 92);
  check("translation", [&] {
    DecodeState state(batch.memory, batch.memory_rows);
    Context context;
    context.decoding = &state;
    for (Index position = 0; position < std::min<Index>(4, layer.options.max_length); ++position) {
      state.advance(parents, tokens, Ragged::of_lengths(one_each));
      trial(context, x, state.rows_of_sentences(), state.memory(), state.memory_rows());
    }
  });
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

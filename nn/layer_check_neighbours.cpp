// The checks of what a row may depend on: on its own sentence, whatever the batch, and in the decoder on no later row.
#include <fmt/format.h>

#include <algorithm>

#include "weft/core/gemm.h"
#include "weft/nn/layer_checks.h"

namespace weft {
namespace {

#ifdef WEFT_VECTOR_GEMM
constexpr double kOtherRows = 0;  // how much other rows may change a row: not by a bit
#else
constexpr double kOtherRows = kRounding;  // OpenBLAS may sum in another order for another number of rows
#endif

/// How a layer is run.
struct Mode {
  bool taped, training;
  const char* name;
};
constexpr Mode kModes[] = {{false, false, "without a tape"}, {true, false, "on a tape"}, {true, true, "in training"}};

Tensor result_of(LayerTrial& trial, const LayerBatch& batch, const Mode& mode) {
  if (!mode.taped) return trial({}, batch);
  return trial.pass(batch, Tensor::zeros(batch.x.shape()), mode.training, kStepRandom).result;
}

Tensor rows_of(const Tensor& x, const Ragged& rows, Index sentence) {
  return x.row_range(rows.begin(sentence), rows.end(sentence));
}

void copy_rows(const Tensor& from, Tensor to) {
  std::copy(from.values().begin(), from.values().end(), to.values().begin());
}

/// One sentence of a batch.
LayerBatch sentence_of(const LayerBatch& batch, Index s) {
  return {rows_of(batch.x, batch.rows, s), Ragged::of_lengths({batch.rows.length(s)}),
          rows_of(batch.memory, batch.memory_rows, s), Ragged::of_lengths({batch.memory_rows.length(s)})};
}

/// Orders to put seven sentences together in.
std::vector<std::vector<std::size_t>> orders_of(const std::vector<LayerBatch>& sentences) {
  std::vector<std::vector<std::size_t>> orders{{}, {}, {3, 3, 3}, {4, 0}, {0, 6}};
  for (std::size_t s = 0; s < sentences.size(); ++s) orders[0].push_back(s), orders[1].insert(orders[1].begin(), s);
  Random random(11);
  for (int i = 0; i < 4; ++i) {  // some twice or more, so that batches of several sizes come up
    orders.emplace_back();
    for (int k = 0; k < 4 << i; ++k) orders.back().push_back(static_cast<std::size_t>(random.below(sentences.size())));
  }
  return orders;
}

/// Each sentence alone, and among others in several orders.
void check_orders(const LayerToCheck& layer, const std::vector<LayerBatch>& sentences, Finding& finding) {
  LayerTrial trial = layer.without_dropout().make();
  const std::vector<std::vector<std::size_t>> orders = orders_of(sentences);
  for (const Mode& mode : kModes) {
    std::vector<Tensor> alone;
    for (const LayerBatch& sentence : sentences) alone.push_back(result_of(trial, sentence, mode));
    for (const std::vector<std::size_t>& order : orders) {
      const LayerBatch batch = together(sentences, order);
      const Tensor all = result_of(trial, batch, mode);
      // In training, a dropout of the layer's own is the same in the first sentence only: masks go by a row's number.
      const std::size_t count = mode.training ? 1 : order.size();
      for (std::size_t i = 0; i < count; ++i) {
        const auto s = static_cast<Index>(i);
        finding.see(difference(rows_of(all, batch.rows, s), alone[order[i]]), kOtherRows,
                    fmt::format("a sentence of {} rows, number {} of {}, {}", batch.rows.length(s), i + 1, order.size(),
                                mode.name));
      }
    }
  }
}

/// The same while decoding, alone with one hypothesis and among others with one to three of each sentence. Each text is
/// decoded by a layer of its own: what a layer keeps from text to text is for another check.
void check_orders_decoding(const LayerToCheck& layer, const std::vector<LayerBatch>& sentences, Finding& finding) {
  if (!layer.options.causal || !layer.make().incremental()) return;
  std::vector<Tensor> alone;
  for (const LayerBatch& sentence : sentences) alone.push_back(decoded(layer.make(), sentence));
  for (const std::vector<std::size_t>& order : orders_of(sentences)) {
    const LayerBatch batch = together(sentences, order);
    const auto hypotheses = static_cast<Index>(1 + order.size() % 3);
    const Tensor all = decoded(layer.make(), batch, hypotheses);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto s = static_cast<Index>(i);
      finding.see(difference(rows_of(all, batch.rows, s), alone[order[i]]), kOtherRows,
                  fmt::format("a sentence of {} rows, number {} of {}, decoded with {} hypotheses of each",
                              batch.rows.length(s), i + 1, order.size(), hypotheses));
    }
  }
}

/// Each sentence in training with dropout, while all others are changed.
void check_others_changed(const LayerToCheck& layer, const std::vector<LayerBatch>& sentences, Finding& finding) {
  LayerTrial trial = layer.make();
  const Mode& training = kModes[2];
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < sentences.size(); ++s) order.push_back(s);
  const LayerBatch batch = together(sentences, order);
  const Tensor result = result_of(trial, batch, training);
  for (Index s = 0; s < batch.rows.sequences(); ++s) {
    LayerBatch other = batch;
    other.x = random_rows(batch.x.shape(), 37), other.memory = random_rows(batch.memory.shape(), 38);
    copy_rows(rows_of(batch.x, batch.rows, s), rows_of(other.x, batch.rows, s));
    copy_rows(rows_of(batch.memory, batch.memory_rows, s), rows_of(other.memory, batch.memory_rows, s));
    finding.see(difference(rows_of(result_of(trial, other, training), batch.rows, s), rows_of(result, batch.rows, s)),
                0, fmt::format("a sentence of {} rows, others changed, in training", batch.rows.length(s)));
  }
}

/// A large batch, result and gradients, against its sentences alone.
void check_large_batch(const LayerToCheck& layer, std::uint64_t seed, Finding& finding) {
  LayerTrial trial = layer.make();
  const LayerBatch batch = layer.large_batch(seed);
  const Tensor gradient = random_rows(batch.x.shape(), 39);
  const LayerPass all = trial.pass(batch, gradient, false);
  LayerPass alone{Tensor(all.result.shape()), {}};
  for (const Tensor& of_all : all.gradients) alone.gradients.push_back(Tensor::zeros(of_all.shape()));
  for (Index s = 0; s < batch.rows.sequences(); ++s) {
    const LayerPass one = trial.pass(sentence_of(batch, s), rows_of(gradient, batch.rows, s), false);
    copy_rows(one.result, rows_of(alone.result, batch.rows, s));
    copy_rows(one.gradients[0], rows_of(alone.gradients[0], batch.rows, s));
    if (trial.crosses()) copy_rows(one.gradients[1], rows_of(alone.gradients[1], batch.memory_rows, s));
    const Tensor& of_parameters = one.gradients.back();
    accumulate(of_parameters.size(), of_parameters.data(), {alone.gradients.back().data(), 1});
  }
  const std::string where = fmt::format("a batch of {} rows against its sentences alone: ", batch.rows.rows());
  finding.see(difference(all.result, alone.result), kOtherRows, where + "the result");
  for (std::size_t i = 0; i < all.gradients.size(); ++i) {
    const char* const of = i + 1 == all.gradients.size() ? "the parameters" : i == 0 ? "input 0" : "input 1";
    finding.see(difference(all.gradients[i], alone.gradients[i]), kRounding, where + "gradients of " + of);
  }
}

}  // namespace

void check_batches(const LayerToCheck& layer, Finding& finding) {
  std::vector<LayerBatch> sentences;
  const Index lengths[] = {1, 5, 2, kLongSentence, 0, 17, 3}, memory_lengths[] = {4, 1, kLongSentence, 2, 3, 11, 0};
  for (std::size_t s = 0; s < std::size(lengths); ++s) {
    sentences.push_back(layer.batch({lengths[s]}, {memory_lengths[s]}, 30 + s));
  }
  check_orders(layer, sentences, finding);
  check_orders_decoding(layer, sentences, finding);
  check_others_changed(layer, sentences, finding);
  see_with_any_input(finding, [&](std::uint64_t seed, Finding& one) { check_large_batch(layer, 20 + seed, one); });
}

void check_causality(const LayerToCheck& layer, Finding& finding) {
  const std::vector<Index> lengths{kLongSentence, 1, 9}, memory_lengths{3, 1, 5};
  const LayerBatch batch = layer.batch(lengths, memory_lengths, 41);
  const Index longest = batch.rows.length(0), sentences = batch.rows.sequences();
  for (const bool dropout : {false, true}) {
    LayerTrial trial = dropout ? layer.make() : layer.without_dropout().make();
    for (const Mode& mode : kModes) {
      if (dropout && !mode.training) continue;
      const Tensor whole = result_of(trial, batch, mode);
      for (Index last = 0; last < longest; ++last) {
        if (!stops_at(last, longest)) continue;
        LayerBatch other = layer.batch(lengths, memory_lengths, 42), cut;
        other.memory = batch.memory;
        cut.memory = batch.memory, cut.memory_rows = batch.memory_rows;
        for (Index s = 0; s < sentences; ++s) cut.rows.append(std::min(batch.rows.length(s), last + 1));
        cut.x = Tensor({cut.rows.rows(), layer.options.d_model});
        const auto kept = [&](const Tensor& x, Index s) {
          return x.row_range(batch.rows.begin(s), batch.rows.begin(s) + cut.rows.length(s));
        };
        for (Index s = 0; s < sentences; ++s) {
          copy_rows(kept(batch.x, s), kept(other.x, s));
          copy_rows(kept(batch.x, s), rows_of(cut.x, cut.rows, s));
        }
        const Tensor changed = result_of(trial, other, mode);
        const Tensor shortened = dropout ? Tensor() : result_of(trial, cut, mode);
        for (Index s = 0; s < sentences; ++s) {
          const std::string where = fmt::format("rows up to {} of a sentence of {}, {}, later ones ", last + 1,
                                                batch.rows.length(s), mode.name);
          finding.see(difference(kept(changed, s), kept(whole, s)), 0, where + "changed");
          // In training, only the first sentence keeps its rows' numbers, and so a dropout of the layer's own.
          if (dropout || (mode.training && s > 0)) continue;
          finding.see(difference(rows_of(shortened, cut.rows, s), kept(whole, s)), kRounding, where + "cut off");
        }
      }
    }
  }
}

}  // namespace weft

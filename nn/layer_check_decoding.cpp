// The check of a layer that says it is incremental: the past that it keeps against whole prefixes.
#include <fmt/format.h>

#include <algorithm>

#include "weft/nn/decode_state.h"
#include "weft/nn/layer_checks.h"

namespace weft {
namespace {

/// Translates three sentences for some steps, each with up to eight hypotheses that grow in number, swap and end. In
/// each step the layer `beside` is run first, as another one of a model.
void decode(const LayerTrial& trial, const LayerTrial& beside, const LayerBatch& sentences, Index steps,
            std::uint64_t seed, const char* text, Finding& finding) {
  const Index d_model = sentences.x.cols();
  const Unchanged same_parameters = trial.parameters_unchanged();
  DecodeState state(sentences.memory, sentences.memory_rows);
  Context context;
  context.decoding = &state;
  Random random(12 + seed);
  std::vector<std::vector<std::vector<real>>> past(
      3, std::vector<std::vector<real>>(1));  // [sentence][hypothesis]: its rows so far
  for (Index step = 0; step < steps; ++step) {
    std::vector<std::vector<std::vector<real>>> grown(3);
    std::vector<Index> parents;
    std::vector<TokenId> tokens;
    Ragged rows, rows_of_sentences;
    LayerBatch whole;
    Index before = 0;
    for (std::size_t s = 0; s < 3; ++s) {
      const bool ends = s == 1 && step == 4;
      const Index hypotheses = past[s].empty() || ends ? 0 : 1 + static_cast<Index>(random.below(8));
      for (Index h = 0; h < hypotheses; ++h) {
        const std::size_t parent = random.below(past[s].size());
        parents.push_back(before + static_cast<Index>(parent));
        tokens.push_back(3);
        rows.append(1);
        grown[s].push_back(past[s][parent]);
      }
      before += step == 0 ? 0 : static_cast<Index>(past[s].size());
      rows_of_sentences.append(hypotheses);
    }
    const Tensor x = random_rows({rows.rows(), d_model}, 100 * seed + static_cast<std::uint64_t>(step));
    std::vector<real> all, memory;
    Index row = 0;
    for (std::size_t s = 0; s < 3; ++s) {
      const Tensor of_sentence = sentences.memory.row_range(sentences.memory_rows.begin(static_cast<Index>(s)),
                                                            sentences.memory_rows.end(static_cast<Index>(s)));
      for (std::vector<real>& hypothesis : grown[s]) {
        const Tensor newest = x.row_range(row, row + 1);
        hypothesis.insert(hypothesis.end(), newest.values().begin(), newest.values().end());
        all.insert(all.end(), hypothesis.begin(), hypothesis.end());
        memory.insert(memory.end(), of_sentence.values().begin(), of_sentence.values().end());
        whole.rows.append(step + 1);
        whole.memory_rows.append(of_sentence.rows());
        ++row;
      }
    }
    whole.x = Tensor::of({whole.rows.rows(), d_model}, all);
    whole.memory = Tensor::of({whole.memory_rows.rows(), d_model}, memory);
    past = grown;
    state.advance(parents, tokens, rows_of_sentences);
    beside(context, x, rows, state.memory(), state.memory_rows());
    const Tensor y = trial(context, x, rows, state.memory(), state.memory_rows()).value();
    if (!stops_at(step, steps)) continue;
    const Tensor prefixes = trial({}, whole), expected(x.shape());
    double furthest = 0;
    Index worst = 0;
    for (row = 0; row < rows.rows(); ++row) {
      const Tensor last = prefixes.row_range(whole.rows.end(row) - 1, whole.rows.end(row));
      std::copy_n(last.data(), d_model, Tensor(expected).row_range(row, row + 1).data());
      const double off = difference(y.row_range(row, row + 1), last);
      if (off > furthest) furthest = off, worst = row;
    }
    finding.see(difference(y, expected), kRounding,
                fmt::format("{} text, position {}, hypothesis {} of {}", text, step + 1, worst + 1, rows.rows()));
  }
  same_parameters.require();
}

}  // namespace

Tensor decoded(const LayerTrial& trial, const LayerBatch& batch, Index hypotheses) {
  const Index d_model = batch.x.cols(), sentences = batch.rows.sequences();
  const Tensor result(batch.x.shape());
  const Unchanged same_parameters = trial.parameters_unchanged();
  DecodeState state(batch.memory, batch.memory_rows);
  Context context;
  context.decoding = &state;
  Index longest = 0;
  for (Index s = 0; s < sentences; ++s) longest = std::max(longest, batch.rows.length(s));
  for (Index step = 0; step < longest; ++step) {
    std::vector<Index> parents, newest;  // newest: where the rows are in the batch
    Ragged rows, rows_of_sentences;
    Index before = 0;
    for (Index s = 0; s < sentences; ++s) {
      const Index length = batch.rows.length(s), count = step < length ? hypotheses : 0;
      for (Index h = 0; h < count; ++h) {
        parents.push_back(before + h);
        newest.push_back(batch.rows.begin(s) + step);
        rows.append(1);
      }
      rows_of_sentences.append(count);
      if (step <= length) before += hypotheses;
    }
    Tensor x({rows.rows(), d_model});
    for (std::size_t i = 0; i < newest.size(); ++i) {
      std::copy_n(batch.x.data() + newest[i] * d_model, d_model, x.data() + static_cast<Index>(i) * d_model);
    }
    state.advance(parents, std::vector<TokenId>(parents.size(), 3), rows_of_sentences);
    const Tensor y = trial(context, x, rows, state.memory(), state.memory_rows()).value();
    for (std::size_t i = 0; i < newest.size(); ++i) {  // the last of a sentence stays
      std::copy_n(y.data() + static_cast<Index>(i) * d_model, d_model, Tensor(result).data() + newest[i] * d_model);
    }
  }
  same_parameters.require();
  return result;
}

void check_decoding(const LayerToCheck& layer, Finding& finding) {
  if (!layer.make().incremental()) {
    finding.instead = "not incremental: translation runs whole prefixes";
    return;
  }
  const Index longest = layer.options.max_length, brief = std::min<Index>(8, longest);
  see_with_any_input(finding, [&](std::uint64_t seed, Finding& one) {
    LayerTrial trial = layer.make();
    const LayerTrial beside = layer.make_other();
    const std::vector<Index> each_one(3, 1), memory_lengths{kLongSentence, 1, 6};
    LayerBatch text = layer.batch(each_one, memory_lengths, 50 + seed);
    decode(trial, beside, text, std::min(kLongSentence, longest), seed, "first", one);
    // What is kept in the layer, and not in DecodeState, is now that of another text: of another memory in the same
    // place, then of one of other lengths, then of other parameters.
    const LayerBatch same_lengths = layer.batch(each_one, memory_lengths, 60 + seed);
    std::copy_n(same_lengths.memory.data(), text.memory.size(), text.memory.data());
    decode(trial, beside, text, brief, seed, "second", one);
    const LayerBatch other = layer.batch(each_one, {4, 9, 2}, 70 + seed);
    decode(trial, beside, other, brief, seed, "third", one);
    // Training changes parameters after a pass on a tape, in which a layer may drop what it made of them.
    trial.pass(other, Tensor::zeros(other.x.shape()), true, kStepRandom);
    const Tensor values = trial.parameters().values(), moved = random_rows(values.shape(), seed, 0.2);
    accumulate(values.size(), moved.data(), {Tensor(values).data(), 1});
    decode(trial, beside, other, brief, seed, "after the parameters changed, the third", one);
  });
}

}  // namespace weft

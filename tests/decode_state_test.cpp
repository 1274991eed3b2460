// Decoding step by step against teacher forcing over whole prefixes.
#include "weft/nn/decode_state.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "small_model.h"
#include "weft/core/error.h"
#include "weft/nn/attention.h"

using namespace weft;

namespace {

constexpr double kTolerance = sizeof(real) == sizeof(double) ? 1e-12 : 1e-5;

/// The default self-attention without a past of its own; remembers the most rows it was given.
class ForgetfulAttention : public MultiHeadSelfAttention {
 public:
  using MultiHeadSelfAttention::MultiHeadSelfAttention;
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override {
    CHECK(context.decoding == nullptr);
    most_rows = std::max(most_rows, x.rows());
    return MultiHeadSelfAttention::operator()(context, x, rows);
  }
  bool incremental() const override { return false; }

  static inline Index most_rows = 0;
};

/// A norm that looks at all rows of a sequence up to its own: not a layer for single positions.
class RunningMeanNorm : public Layer {
 public:
  RunningMeanNorm(Module& parent, std::string_view name, const LayerOptions&) : Layer(parent, name) {}
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    Tensor y = x.value().clone();
    const Index columns = x.cols();
    for (Index s = 0; s < rows.sequences(); ++s) {
      std::vector<real> sum(static_cast<std::size_t>(columns));
      for (Index t = rows.begin(s); t < rows.end(s); ++t) {
        for (Index d = 0; d < columns; ++d) {
          real& total = sum[static_cast<std::size_t>(d)];
          total += x.value().data()[t * columns + d];
          y.data()[t * columns + d] -= total / static_cast<real>(t - rows.begin(s) + 1) / 2;
        }
      }
    }
    return y;
  }
};

/// Hypotheses of a sentence, at one step: which hypothesis of the sentence each continues.
using Parents = std::vector<std::vector<Index>>;

/// Six steps of three sentences: hypotheses grow in number, swap, double, die, and sentences end.
const std::vector<Parents> kSteps{{{0, 0}, {0}, {0, 0, 0}},  // the first step has no parents to read
                                  {{1, 0}, {0, 0}, {2, 0, 1}}, {{0, 0, 1}, {1, 1}, {1}}, {{2, 1, 0}, {}, {0, 0}},
                                  {{1, 1, 2}, {}, {1, 0, 1}},  {{2}, {}, {2, 2}}};

/// Decodes kSteps with random tokens and checks all logits of every step.
void check_decoding(const TransformerOptions& options, const Registry& registry) {
  ParameterSet parameters(3);
  const Transformer model(parameters, options, registry);
  perturb(parameters);
  const SmallBatch batch(options, {4, 1, 6}, {1, 1, 1});
  const Context context;
  const Var memory = model.encode(context, batch.source, batch.source_rows);
  DecodeState state(memory.value(), batch.source_rows);
  Random random(7);

  std::vector<std::vector<std::vector<TokenId>>> prefixes(3);  // [sentence][hypothesis]
  for (const Parents& step : kSteps) {
    std::vector<Index> parents;
    std::vector<TokenId> tokens;
    Ragged rows_of_sentences;
    Index rows_before = 0;
    std::vector<std::vector<std::vector<TokenId>>> grown(3);
    for (std::size_t s = 0; s < 3; ++s) {
      for (const Index parent : step[s]) {
        parents.push_back(rows_before + parent);
        tokens.push_back(random_tokens(random, 1, options.target_vocabulary)[0]);
        grown[s].push_back(prefixes[s].empty() ? std::vector<TokenId>()
                                               : prefixes[s].at(static_cast<std::size_t>(parent)));
        grown[s].back().push_back(tokens.back());
      }
      rows_before += static_cast<Index>(prefixes[s].size());
      rows_of_sentences.append(static_cast<Index>(step[s].size()));
    }
    prefixes = grown;
    state.advance(parents, tokens, rows_of_sentences);
    const Tensor logits = model.next_logits(state);
    REQUIRE(logits.rows() == static_cast<Index>(tokens.size()));

    Index row = 0;
    for (Index s = 0; s < 3; ++s) {
      const Index begin = batch.source_rows.begin(s), end = batch.source_rows.end(s);
      for (const std::vector<TokenId>& prefix : prefixes[static_cast<std::size_t>(s)]) {
        CAPTURE(state.step());
        CAPTURE(row);
        CHECK(state.prefix(row) == prefix);
        const auto length = static_cast<Index>(prefix.size());
        const Var states = model.decode(context, prefix, Ragged::of_lengths({length}),
                                        memory.value().row_range(begin, end), Ragged::of_lengths({end - begin}));
        const Tensor whole = model.logits(context, states).value();
        CHECK(worst_error(logits.row_range(row, row + 1), whole.row_range(length - 1, length)) <= kTolerance);
        ++row;
      }
    }
  }
  CHECK(state.step() == 5);
}

}  // namespace

TEST_CASE("cached decoding equals teacher forcing for every hypothesis") {
  for (const bool norm_first : {false, true}) {
    for (const char* positions : {"sinusoidal", "learned"}) {
      CAPTURE(norm_first);
      CAPTURE(positions);
      TransformerOptions options = norm_first ? pre_norm(small_options()) : small_options();
      options.positions = positions;
      check_decoding(options, standard_layers());
    }
  }
}

TEST_CASE("a layer without a past makes the decoder run whole prefixes, with the same logits") {
  Registry registry = standard_layers();
  registry.add<ForgetfulAttention>("self_attention", "forgetful");
  registry.add<RunningMeanNorm>("norm", "running_mean");
  TransformerOptions options = small_options();
  options.self_attention = "forgetful";
  check_decoding(options, registry);
  CHECK(ForgetfulAttention::most_rows == 30);  // step 5 has 6 hypotheses of 5 tokens
  check_decoding(pre_norm(options), registry);

  options.self_attention = "multi_head";
  options.norm = "running_mean";
  check_decoding(options, registry);
  check_decoding(pre_norm(options), registry);
}

TEST_CASE("the logits without a past are those with one") {
  Registry registry = standard_layers();
  registry.add<ForgetfulAttention>("self_attention", "forgetful");
  TransformerOptions options = small_options();
  const SmallBatch batch(options, {4, 1, 6}, {1, 1, 1});
  std::vector<Tensor> logits;
  for (const char* self_attention : {"multi_head", "forgetful"}) {
    options.self_attention = self_attention;
    ParameterSet parameters(3);
    const Transformer model(parameters, options, registry);
    DecodeState state(model.encode({}, batch.source, batch.source_rows).value(), batch.source_rows);
    state.advance({}, std::vector<TokenId>{1, 1, 1}, Ragged::of_lengths({1, 1, 1}));
    model.next_logits(state);
    state.advance(std::vector<Index>{0, 0, 1, 2}, std::vector<TokenId>{3, 4, 5, 6}, Ragged::of_lengths({2, 1, 1}));
    model.next_logits(state);
    state.advance(std::vector<Index>{1, 0, 3}, std::vector<TokenId>{7, 8, 9}, Ragged::of_lengths({2, 0, 1}));
    logits.push_back(model.next_logits(state));
  }
  CHECK(worst_error(logits[0], logits[1]) <= kTolerance);
}

TEST_CASE("logits are asked for once a step") {
  const TransformerOptions options = small_options();
  ParameterSet parameters;
  const Transformer model(parameters, options, standard_layers());
  const std::vector<TokenId> token{4};
  const std::vector<Index> same{0};
  DecodeState twice(Tensor::zeros({2, options.d_model}), Ragged::of_lengths({2}));
  twice.advance({}, token, Ragged::of_lengths({1}));
  model.next_logits(twice);
  CHECK_THROWS_AS(model.next_logits(twice), ShapeError);
  DecodeState skipped(Tensor::zeros({2, options.d_model}), Ragged::of_lengths({2}));
  skipped.advance({}, token, Ragged::of_lengths({1}));
  skipped.advance(same, token, Ragged::of_lengths({1}));
  CHECK_THROWS_AS(model.next_logits(skipped), ShapeError);
}

TEST_CASE("a decoding cannot be advanced by what does not fit, or past the longest length") {
  TransformerOptions options = small_options();
  options.max_length = 3;
  ParameterSet parameters;
  const Transformer model(parameters, options, standard_layers());
  DecodeState state(Tensor::zeros({3, options.d_model}), Ragged::of_lengths({1, 2}));
  const std::vector<TokenId> two{4, 5};
  CHECK_THROWS_AS(state.advance({}, two, Ragged::of_lengths({2})), ShapeError);     // one sentence of two
  CHECK_THROWS_AS(state.advance({}, two, Ragged::of_lengths({1, 2})), ShapeError);  // three rows
  state.advance({}, two, Ragged::of_lengths({1, 1}));
  CHECK_THROWS_AS(state.advance({}, two, Ragged::of_lengths({1, 1})), ShapeError);  // no parents
  CHECK_THROWS_AS(state.advance(std::vector<Index>{0, 2}, two, Ragged::of_lengths({1, 1})), ShapeError);
  CHECK_THROWS_AS(state.advance(std::vector<Index>{-1, 0}, two, Ragged::of_lengths({1, 1})), ShapeError);
  CHECK(state.step() == 0);
  const std::vector<Index> same{0, 1};
  for (int i = 0; i < 3; ++i) {
    CHECK_NOTHROW(model.next_logits(state));
    state.advance(same, two, Ragged::of_lengths({1, 1}));
  }
  CHECK_THROWS_AS(model.next_logits(state), ShapeError);
}

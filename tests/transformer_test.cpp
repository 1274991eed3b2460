// The forward pass of a Transformer on packed batches.
#include "weft/nn/transformer.h"

#include <doctest/doctest.h>

#include "small_model.h"

using namespace weft;

TEST_CASE("a sentence does not depend on its neighbours in the batch") {
  constexpr double kTolerance = sizeof(real) == sizeof(double) ? 1e-13 : 1e-5;
  for (const TransformerOptions& options : {small_options(), pre_norm(small_options())}) {
    CAPTURE(options.norm_first);
    ParameterSet parameters;
    const Transformer model(parameters, options, standard_layers());
    perturb(parameters);
    const SmallBatch batch(options, {5, 1, 9, 0, 3}, {2, 6, 1, 4, 3});
    const Context context;
    const Tensor memory = model.encode(context, batch.source, batch.source_rows).value();
    const Tensor states =
        model.decode(context, batch.decoder_input, batch.target_rows, memory, batch.source_rows).value();
    double losses = 0;
    for (Index s = 0; s < batch.source_rows.sequences(); ++s) {
      CAPTURE(s);
      const auto part = [s](const std::vector<TokenId>& ids, const Ragged& rows) {
        return std::span<const TokenId>(ids).subspan(static_cast<std::size_t>(rows.begin(s)),
                                                     static_cast<std::size_t>(rows.length(s)));
      };
      const Ragged source_rows = Ragged::of_lengths({batch.source_rows.length(s)});
      const Ragged target_rows = Ragged::of_lengths({batch.target_rows.length(s)});
      const auto source = part(batch.source, batch.source_rows);
      const auto decoder_input = part(batch.decoder_input, batch.target_rows);
      const Tensor alone = model.encode(context, source, source_rows).value();
      if (alone.size() > 0) {
        CHECK(worst_error(alone, memory.row_range(batch.source_rows.begin(s), batch.source_rows.end(s))) <= kTolerance);
      }
      const Tensor decoded = model.decode(context, decoder_input, target_rows, alone, source_rows).value();
      CHECK(worst_error(decoded, states.row_range(batch.target_rows.begin(s), batch.target_rows.end(s))) <= kTolerance);
      const TransformerBatch sentence{source, source_rows, decoder_input, part(batch.target, batch.target_rows),
                                      target_rows};
      losses += static_cast<double>(model.loss(context, sentence, {}).value().item());
    }
    CHECK(static_cast<double>(model.loss(context, batch.batch(), {}).value().item()) ==
          doctest::Approx(losses).epsilon(kTolerance));
  }
}

TEST_CASE("cross-attention weights are observed where the context asks for them") {
  const TransformerOptions options = small_options();
  ParameterSet parameters;
  const Transformer model(parameters, options, standard_layers());
  const SmallBatch batch(options, {5, 2}, {3, 4});
  AttentionRecord record;
  Context context;
  context.attention = &record;
  model.loss(context, batch.batch(), {});
  REQUIRE(record.size() == 2);
  CHECK(record[0].first == "decoder.layers.0.cross_attention");
  CHECK(record[1].first == "decoder.layers.1.cross_attention");
  REQUIRE(record[1].second.size() == 2);
  CHECK(record[1].second[0].shape() == Shape{3, 3, 5});
  CHECK(record[1].second[1].shape() == Shape{3, 4, 2});
  for (const Tensor& weights : record[1].second) {
    for (Index row = 0; row < weights.rows(); ++row) {
      double total = 0;
      for (Index key = 0; key < weights.cols(); ++key) {
        total += static_cast<double>(weights.data()[row * weights.cols() + key]);
      }
      CHECK(total == doctest::Approx(1));
    }
  }
}

TEST_CASE("embeddings have a dropout of their own, or that of the model") {
  const auto loss = [](double dropout, double embedding_dropout) {
    TransformerOptions options = small_options();
    options.dropout = dropout;
    options.embedding_dropout = embedding_dropout;
    ParameterSet parameters;
    const Transformer model(parameters, options, standard_layers());
    const SmallBatch batch(options, {5, 2}, {3, 4});
    Context context;
    context.training = true;
    context.random = {3, 12};
    return static_cast<double>(model.loss(context, batch.batch(), {}).value().item());
  };
  CHECK(loss(0.3, -1) == loss(0.3, 0.3));
  CHECK(loss(0.3, 0) != loss(0.3, 0.3));
  CHECK(loss(0, -1) == loss(0, 0));
  CHECK(loss(0, 0.3) != loss(0, 0));
}

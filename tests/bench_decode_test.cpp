// What the measuring of decoding decodes; how fast is not for a test.
#include "weft/train/bench_decode.h"

#include <doctest/doctest.h>

#include "small_model.h"
#include "weft/core/error.h"

using namespace weft;

TEST_CASE("bench_decode decodes as many tokens as it says, the same in each run") {
  TransformerOptions shape = small_options();
  shape.max_length = 12;
  ParameterSet parameters(1);
  const Transformer model(parameters, shape, standard_layers());
  DecodeBenchOptions options{.sentences = 5, .single_sentences = 2, .length = 7, .rounds = 1};
  const auto results = bench_decode(model, options);
  REQUIRE(results.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(results[i].beam == (i % 2 == 0 ? 1 : 4));
    CHECK(results[i].batch == (i < 2 ? 1 : 5));
    CHECK(results[i].tokens == (i < 2 ? 2 : 5) * 8);
    CHECK(results[i].seconds > 0);
    CHECK(results[i].tokens_per_second == doctest::Approx(static_cast<double>(results[i].tokens) / results[i].seconds));
  }
  const DecodeBenchText text = bench_decode_text(model, options, 4);
  REQUIRE(text.sources.size() == 5);
  REQUIRE(text.outputs.size() == 5);
  for (std::size_t s = 0; s < 5; ++s) {
    CHECK(text.sources[s].size() == 7);
    CHECK(text.sources[s].back() == 2);
    CHECK(text.outputs[s].size() == 7);
  }
  CHECK(text.sources[0] != text.sources[1]);
  CHECK(bench_decode_text(model, options, 4).outputs == text.outputs);
  options.length = 12;
  CHECK_THROWS_AS(bench_decode(model, options), ConfigError);
}

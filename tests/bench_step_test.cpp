// The synthetic work of `weft bench step`: batches as the configuration says, results that can be true, and an export that
// another program can check.
#include "weft/train/bench_step.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/threads.h"
#include "weft/train/bench_batches.h"
#include "weft/train/bench_export.h"
#include "weft/train/bench_products.h"
#include "weft/train/checkpoint.h"

using namespace weft;

namespace {

Config small_config(const std::string& lengths) {
  return parse_config(R"({"model": {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1,
                                    "d_feed_forward": 32},
                          "bench": {"vocabulary": 50, "target_tokens": 96, "lengths": ")" +
                          lengths + "\"}}",
                      "test.json");
}

}  // namespace

TEST_CASE("uniform batches: one, of equal sentences, full") {
  const std::vector<Batch> batches = make_bench_batches(small_config("uniform:8"));
  REQUIRE(batches.size() == 1);
  CHECK(batches[0].target_rows.rows() == 96);
  CHECK(batches[0].source_rows.rows() == 96);
  for (Index s = 0; s < 12; ++s) {
    CHECK(batches[0].target_rows.length(s) == 8);
    CHECK(batches[0].source_rows.length(s) == 8);
  }
  CHECK(std::all_of(batches[0].source.begin(), batches[0].source.end(),
                    [](TokenId id) { return id >= kEnd && id < 50; }));
}

TEST_CASE("realistic batches: lengths from 5 to 40 with a mean of 14, alike within a batch, the same each time") {
  Config config = small_config("realistic");
  config.bench.target_tokens = 4096;
  const std::vector<Batch> batches = make_bench_batches(config), again = make_bench_batches(config);
  CHECK(batches.size() >= 15);
  double tokens = 0, sentences = 0;
  Index longest = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    CHECK(batches[i].target == again[i].target);
    CHECK(batches[i].target_rows.rows() >= 4096);
    CHECK(batches[i].target_rows.rows() < 4096 + 40);
    tokens += static_cast<double>(batches[i].target_rows.rows());
    sentences += static_cast<double>(batches[i].target_rows.sequences());
    for (Index s = 0; s < batches[i].target_rows.sequences(); ++s) {
      const Index length = batches[i].target_rows.length(s);
      CHECK(length >= std::max<Index>(5, longest));  // sorted
      CHECK(length <= 40);
      longest = length;
    }
  }
  CHECK(tokens / sentences == doctest::Approx(14).epsilon(0.05));
}

TEST_CASE("lengths that are none, or too long for the model, are refused") {
  CHECK_THROWS_SAYING(small_config("uniform:1"), "bench.lengths is \"uniform:1\"", ConfigError);
  CHECK_THROWS_SAYING(small_config("uniform:8x"), "must be \"realistic\" or \"uniform:\"", ConfigError);
  CHECK_THROWS_SAYING(small_config("uniform:513"), "at most model.max_length (512)", ConfigError);
  Config config = small_config("realistic");
  config.model.max_length = 39;
  CHECK_THROWS_SAYING(make_bench_batches(config), "needs model.max_length to be at least 40", ConfigError);
}

TEST_CASE("a measured step: all its arithmetic is counted, and it leaves the heap alone") {
  set_threads(1);  // how much memory tiles use at one time is then always the same
  const auto model = make_bench_model(small_config("uniform:8"), standard_layers());
  const BenchStepResult result = bench_step(*model, {.rounds = 2, .round_seconds = 0.001, .profile = true});
  CHECK(result.batches == 1);
  CHECK(result.target_tokens == 96);
  CHECK(result.step_seconds > 0);
  CHECK(result.peak_flops > 0);
  CHECK(result.heap_allocations == 0);
  CHECK(result.peak_bytes > model->parameters().count() * 2 * static_cast<Index>(sizeof(real)));
  CHECK(result.peak_resident_bytes >= result.peak_bytes);
  // Forward products times three. T rows, D = 16, feed-forward 32, vocabulary 50; attention sees 8 keys, or 4.5 on average.
  const double T = 96, D = 16;
  const double encoder = 4 * D * D + 2 * D * 32, decoder = 8 * D * D + 2 * D * 32 + D * 50;
  const double attention = 2 * D * (8 + 8 + 4.5);
  CHECK(result.step_flops == doctest::Approx(3 * 2 * T * (encoder + decoder + attention)));
  double profiled = 0;
  for (const OpProfile::Row& row : result.profile) profiled += row.forward + row.backward;
  CHECK(profiled > 0);
  set_threads(2);
}

TEST_CASE("products by themselves: those of every linear layer, with a speed") {
  const std::vector<ProductBenchResult> results = bench_products(small_config("uniform:8"), 0);
  REQUIRE(results.size() == 5);
  CHECK(results[3].rows == 96);
  CHECK(results[3].out == 16);
  CHECK(results[3].in == 32);
  for (const ProductBenchResult& one : results) {
    CHECK(one.forward > 0);
    CHECK(one.backward_x > 0);
    CHECK(one.backward_weight > 0);
  }
}

TEST_CASE("the export says what to compute and what comes out") {
  const TemporaryFolder folder;
  const auto model = make_bench_model(small_config("uniform:8"), standard_layers());
  export_bench_step(*model, folder.path());
  const auto work = nlohmann::json::parse(read_file(folder.path() / "work.json"));
  CHECK(work["parameters"] == model->parameters().count());
  CHECK(work["batches"].size() == 1);
  CHECK(work["batches"][0]["target"].size() == 12);
  CHECK(work["batches"][0]["decoder_input"][0][0] == kBegin);
  // A model that knows nothing is about as unsure as one that guesses evenly.
  CHECK(work["losses"][0].get<double>() == doctest::Approx(std::log(50.0)).epsilon(0.2));
  const Checkpoint checkpoint = load_checkpoint(folder.path() / "model.safetensors", standard_layers());
  CHECK(checkpoint.model->parameters().count() == model->parameters().count());
  CHECK_THROWS_SAYING(export_bench_step(*model, folder.path() / "work.json" / "inside"), "choose another folder",
                      DataError);
}

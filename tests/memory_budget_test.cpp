// Batches that fit into a memory budget.
#include "weft/train/memory_budget.h"

#include <sys/resource.h>

#include "cli.h"
#include "memory_peak.h"
#include "sanitizers.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"

using namespace weft;
using namespace weft::cli;

namespace {

const Index kMega = 1 << 20;

Index chosen(Index budget, const std::vector<std::string>& overrides = {}) {
  const auto model = tiny_model(tiny_config(overrides));
  const TrainingData data = tiny_data(*model, letters(2000, 5), letters(10, 6));
  return batch_tokens_within(*model, data.train, data.valid, budget);
}

/// What tensors may take of a budget.
Index tensors_of(Index budget, const std::vector<std::string>& overrides = {}) {
  const auto model = tiny_model(tiny_config(overrides));
  const TrainingData data = tiny_data(*model, letters(2000, 5), letters(10, 6));
  return tensors_within(*model, data.train, data.valid, 1, budget);
}

/// What an update with such batches takes.
Index taken(Index batch_tokens, const std::vector<std::string>& overrides = {}) {
  const auto model = tiny_model(tiny_config(overrides));
  const TrainingData data = tiny_data(*model, letters(2000, 5), letters(10, 6));
  TrainingStep step(*model);
  release_unused_memory();
  return peak_memory(*model, step, data.train, BatchPlan(data.train, batch_tokens, 1).epoch(0));
}

}  // namespace

TEST_CASE("sizes are read with units of 1000 and 1024") {
  CHECK(parse_bytes("1") == 1);
  CHECK(parse_bytes("17B") == 17);
  CHECK(parse_bytes("2KB") == 2000);
  CHECK(parse_bytes("2KiB") == 2048);
  CHECK(parse_bytes("2K") == 2048);
  CHECK(parse_bytes("800 MB") == 800'000'000);
  CHECK(parse_bytes("1.5GiB") == Index{3} << 29);
  CHECK(parse_bytes("2G") == Index{2} << 30);
  CHECK(parse_bytes("1TiB") == Index{1} << 40);
  for (const char* text : {"", "GiB", "0", "-1GiB", "2 gigs", "2  GiB", "2GiB ", "1e30GiB", "nan", "2gib", "0.5"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text).has_value());
  }
}

TEST_CASE(
    "the chosen batch fits, one a little larger does not, and more "
    "memory allows more") {
  set_threads(1);
  for (const std::vector<std::string>& overrides : {std::vector<std::string>{},
                                                    {"training.ema_decay=0.9"},
                                                    {"training.batch_tokens=1"},
                                                    {"training.batch_tokens=9000"}}) {
    CAPTURE(overrides.size());
    Index before = 0;
    for (const Index budget : {kProgramBytes + 6 * kMega, kProgramBytes + 9 * kMega}) {
      const Index tokens = chosen(budget, overrides);
      CHECK(tokens > before);
      CHECK(taken(tokens, overrides) <= tensors_of(budget));
      CHECK(taken(tokens + tokens / 10, overrides) > tensors_of(budget) * 97 / 100);
      before = tokens;
    }
  }
  // The average has the size of the parameters: with it this is too little.
  const std::vector<std::string> larger{"model.d_model=64"};
  const Index least = taken(1, larger) + 50'000;
  Index enough = kProgramBytes;
  while (tensors_of(enough, larger) < least) enough += 50'000;
  CHECK(chosen(enough, larger) >= 1);
  CHECK_THROWS_SAYING(chosen(enough, {"model.d_model=64", "training.ema_decay=0.9"}), "alone take", ConfigError);
}

TEST_CASE("the search for a batch runs none that does not fit, whatever was configured, and whichever side is long") {
  const auto words = [](Index count) {
    std::string line;
    for (Index i = 0; i < count; ++i) line += "a ";
    return line;
  };
  ParallelText text;
  for (Index i = 0; i < 300; ++i) {
    text.source.push_back(words(i % 2 == 0 ? 50 : 1));
    text.target.push_back(words(i % 2 == 0 ? 1 : 49));
  }
  for (const char* tokens : {"training.batch_tokens=10", "training.batch_tokens=1000000"}) {
    CAPTURE(tokens);
    const auto model = tiny_model(tiny_config(
        {"data.max_length=60", "model.max_length=64", "model.decoder_layers=4", "training.accumulate=2", tokens}));
    const TrainingData data = tiny_data(*model, text, letters(10, 6));
    const Index budget = kProgramBytes + 12 * kMega,
                tensors = tensors_within(*model, data.train, data.valid, 1, budget);
    reset_peak_memory();
    const Index chosen = batch_tokens_within(*model, data.train, data.valid, budget);
    CHECK(memory_statistics().peak_bytes <= tensors * 12 / 10);
    CHECK(chosen > 200);
    TrainingStep step(*model);
    CHECK(peak_memory(*model, step, data.train, BatchPlan(data.train, chosen, 1).epoch(0)) <= tensors * 103 / 100);
  }
}

TEST_CASE("the choice is the same for any number of threads, and again") {
  std::vector<Index> choices;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    choices.push_back(chosen(kProgramBytes + 7 * kMega));
    CHECK(threads() == count);
  }
  set_threads(1);
  CHECK(choices == std::vector<Index>(3, choices[0]));
}

TEST_CASE(
    "a budget for more than the whole text takes it all; one for less "
    "than a pair is refused") {
  const auto model = tiny_model(tiny_config());
  const TrainingData data = tiny_data(*model, letters(50, 5), letters(10, 6));
  const Index tokens = batch_tokens_within(*model, data.train, data.valid, Index{1} << 40);
  CHECK(BatchPlan(data.train, tokens, 1).epoch(0).size() <= 2);
  CHECK_THROWS_SAYING(batch_tokens_within(*model, data.train, data.valid, 5000),
                      "; allow more: program and texts alone take ", ConfigError);
}

TEST_CASE("weft train chooses the batch once, writes it down, and goes on with it") {
  trained();
  const Words words{"train", "tiny.json", "--quiet", "--set", "training.steps=6", "--set", "training.memory=40MB"};
  for (const char* threads : {"1", "2"}) {
    CHECK(run_weft(words + Words{"--run", std::string("memory") + threads, "--threads", threads}).code == 0);
  }
  CHECK(bytes_of("memory1/last.safetensors") == bytes_of("memory2/last.safetensors"));
  const Checkpoint last = load_checkpoint("memory1/last.safetensors", standard_layers());
  const Index tokens = last.model->config().training.batch_tokens;
  CHECK(tokens != 300);
  CHECK(load_config("memory1/config.json").training.batch_tokens == tokens);
  CHECK(run_weft(words + Words{"--run", "memory1"}).code == 0);  // is the same run
  // The same run, told the number.
  CHECK(run_weft(words + Words{"--run", "told", "--set", "training.memory=", "--set",
                               "training.batch_tokens=" + std::to_string(tokens)})
            .code == 0);
  const Checkpoint told = load_checkpoint("told/last.safetensors", standard_layers());
  const Tensor a = last.model->parameters().values(), b = told.model->parameters().values();
  CHECK(std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end()));

  check_refused(words + Words{"--run", "no", "--set", "training.memory=lots"},
                {"training.memory is \"lots\"; must be a size such as \"2GiB\" "
                 "or \"800MB\""});
  check_refused(words + Words{"--run", "no", "--set", "training.memory=1KiB"}, {"1.0 KiB allowed by training.memory"});
}

#ifndef WEFT_SANITIZED
TEST_CASE("training.memory is what the process takes at its peak") {
  trained();
  const Outcome outcome = run_weft({"train", "tiny.json",
                                    "--run", "peak",
                                    "--set", "training.steps=2",
                                    "--set", "data.task=copy",
                                    "--set", "data.tokenizer=whitespace",
                                    "--set", "model.max_length=64",
                                    "--set", "training.memory=90MiB",
                                    "--set", "data.train_source=",
                                    "--set", "data.train_target=",
                                    "--set", "data.valid_source=",
                                    "--set", "data.valid_target=",
                                    "--set", "data.test_source=",
                                    "--set", "data.test_target=",
                                    "--set", "data.max_length=60"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  rusage largest{};
  REQUIRE(::getrusage(RUSAGE_CHILDREN, &largest) == 0);  // of the children so far; the others take far less
  const double peak = static_cast<double>(largest.ru_maxrss) / 1024;  // in MiB
  CAPTURE(peak);
  CHECK(peak > 0.6 * 90);
  CHECK(peak < 1.05 * 90);
}
#endif

TEST_CASE("a budget for less than the longest pair is refused with a size of the model or a length that fits") {
  const auto refusal = [](const std::vector<std::string>& overrides, Index budget) -> std::string {
    try {
      chosen(budget, overrides);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  for (const Index budget : {kProgramBytes + 8 * kMega, kProgramBytes + 16 * kMega}) {
    const std::string text = refusal({"model.d_model=256", "model.d_feed_forward=512"}, budget);
    CAPTURE(text);
    REQUIRE(contains(text, "; lower model.d_model from 256 to "));
    const std::string d_model = text.substr(text.rfind(' ') + 1);
    CHECK(std::stoll(d_model) > 24);
    CHECK(refusal({"model.d_model=" + d_model, "model.d_feed_forward=512"}, budget) == "");
  }
  CAPTURE(refusal({"model.max_length=200000", "model.d_model=32"}, kProgramBytes + 12 * kMega));
  CHECK(contains(refusal({"model.max_length=200000", "model.d_model=32"}, kProgramBytes + 12 * kMega),
                 "; lower model.max_length from 200000 to "));
}

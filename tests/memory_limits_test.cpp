// Runs that do not fit into training.memory, the machine, or what control groups and limits of the shell leave.
#include "weft/train/memory_refusal.h"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>

#include "cli.h"
#include "sanitizers.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/train/text_format.h"

using namespace weft;
using namespace weft::cli;

namespace {

const Index kMega = 1 << 20;

/// The words of a refusal; empty if there is none.
std::string refusal(const MemoryForecast& forecast, const Config& config, const MemoryRoom& room) {
  try {
    require_room(forecast, config, room);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("of training.memory translations get what the program and the training text leave") {
  MemoryForecast forecast;
  forecast.process = kProgramBytes;
  forecast.held = 4 * kMega;
  forecast.state = 8 * kMega;
  forecast.decoding = {60 * kMega, 1000};
  const Config config = tiny_config({"training.memory=160MiB"});
  const MemoryRoom room{1000 * kMega, "left"};
  CHECK(refusal(forecast, config, room) == "");
  forecast.process += 50 * kMega;
  const std::string text = refusal(forecast, config, room);
  CAPTURE(text);
  CHECK(contains(text, "translating at a validation would take " +
                           format_bytes(kProgramBytes + 54 * kMega + forecast.to_come()) +
                           " of memory; 160.0 MiB allowed by training.memory; lower decoding.batch_tokens from "));
}

TEST_CASE("where no room is left for work, the model is too large, and not the validation of a line") {
  MemoryForecast forecast;
  forecast.state = 80 * kMega;
  forecast.validation_lines = 1;
  forecast.validation = {1000, 1000, 1000};
  forecast.largest_rows = forecast.longest_rows = 40;
  CHECK(contains(refusal(forecast, tiny_config(), {75 * kMega, "left"}), "; lower model.d_model from 16 to "));
  forecast.validation_lines = 500;
  CHECK(contains(refusal(forecast, tiny_config(), {75 * kMega, "left"}), "; lower model.d_model from 16 to "));
}

TEST_CASE("a validation that does not fit is refused with a batch, or for a line by itself with a length, that does") {
  const Config config =
      tiny_config({"training.batch_tokens=300", "decoding.batch_tokens=400", "model.max_length=3000"});
  const MemoryRoom room{40 * kMega, "left"};
  MemoryForecast forecast;
  forecast.loss = {60 * kMega, 5000};
  CHECK(contains(refusal(forecast, config, room), "the loss of a validation would take "));
  CHECK(contains(refusal(forecast, config, room),
                 "its longest line has 5000 tokens; leave it out or lower model.max_length from 3000 to "));
  forecast.loss.rows = 290;
  CHECK(contains(refusal(forecast, config, room), "lower training.batch_tokens from 300 to "));
  forecast.loss = {};
  forecast.decoding = {60 * kMega, 2900};
  CHECK(contains(refusal(forecast, config, room), "its longest line has 2900 tokens"));
  forecast.decoding.rows = 390;
  CHECK(contains(refusal(forecast, config, room), "lower decoding.batch_tokens from 400 to "));
}

TEST_CASE("weft train refuses what the machine has no room for, in one line, and writes nothing") {
  trained();
  const Words words{"train", "tiny.json", "--run", "no", "--set", "model.heads=1", "--set"};
  check_refused(words + Words{"model.d_model=65536"},
                {"a model of ", "would take", "lower model.d_model from 65536 to"});
  check_refused(words + Words{"training.memory=8TiB"}, {"training.memory is 8TiB", "lower it"});
  check_refused(words + Words{"model.d_model=200", "--set", "training.memory=4MB"},
                {"a model of ", "allowed by training.memory", "allow more: the program alone takes 32.0 MiB"});
  check_refused(words + Words{"model.d_model=2000", "--set", "training.memory=40MiB"},
                {"a model of ", "allowed by training.memory", "lower model.d_model from 2000 to "});
}

TEST_CASE("scoring the longest references, as many as threads count at once, is in the forecast of a validation") {
  const auto model = tiny_model(tiny_config());
  ParallelText lines = letters(200, 5);
  const Corpus valid = encode_text(*model, lines, 9, "valid").corpus;
  const auto count = [&](int threads) {
    set_threads(threads);
    const MemoryForecast forecast = forecast_memory(*model, valid, valid, lines, {1 << 30, ""});
    set_threads(1);
    return static_cast<double>(forecast.validation.count);
  };
  CHECK(count(2) < 10'000);
  lines.target[3] = std::string(1'000'000, 'x');
  for (int i = 0; i < 500'000; ++i) lines.target[150] += "\xe7\x8c\xab";  // one character
  CHECK(count(1) == doctest::Approx(9e6).epsilon(0.01));
  CHECK(count(2) == doctest::Approx(9e6 + 5.5e6).epsilon(0.01));

  MemoryForecast forecast = forecast_memory(*model, valid, valid, lines, {1 << 30, ""});
  const MemoryRoom room{forecast.to_come() - kMega, "left"};
  CHECK(
      contains(refusal(forecast, tiny_config(), room), "scoring the longest lines of the validation text would take"));
}

TEST_CASE(
    "what the pool keeps is in proportion to the work, not to the state, and the room for work is the other way "
    "round") {
  MemoryForecast forecast;
  for (const Index state : {0, 10, 1000}) {
    for (const Index work : {1, 20, 3000}) {
      CAPTURE(state);
      CAPTURE(work);
      forecast.state = state * kMega;
      forecast.update.fixed = static_cast<double>(work * kMega);
      const Index most = most_reserved(forecast.state + work * kMega);
      CHECK(forecast.to_come() <= std::min(most, (state + 5 * work / 2 + 4) * kMega));
      CHECK(forecast.to_come() >= (state + work) * kMega);
      CHECK(forecast.room_for_work(forecast.to_come()) == doctest::Approx(forecast.work()).epsilon(1e-5));
    }
  }
}

#ifndef WEFT_SANITIZED
TEST_CASE("small blocks that are given back go to the system, though smaller ones between them stay") {
  constexpr Index kBlocks = 400;
  constexpr std::size_t kLarge = 100'000, kSmall = 300;
  release_unused_memory();
  const Index before = resident_memory().now;
  std::vector<void*> large, small;
  for (Index i = 0; i < kBlocks; ++i) {
    large.push_back(pool_allocate(kLarge));
    std::memset(large.back(), 1, kLarge);
    small.push_back(pool_allocate(kSmall));
  }
  CHECK(resident_memory().now - before > 30 * kMega);
  for (void* const block : large) pool_free(block);
  release_unused_memory();
  CHECK(resident_memory().now - before < 5 * kMega);
  for (void* const block : small) pool_free(block);
}

TEST_CASE("weft train refuses what a limit of the shell (ulimit -v) leaves no room for") {
  trained();
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit lower = before;
  lower.rlim_cur = 400 << 20;
  REQUIRE(::setrlimit(RLIMIT_AS, &lower) == 0);
  const Outcome outcome =
      run_weft({"train", "tiny.json", "--run", "no", "--threads", "1", "--set", "model.d_model=4000"});
  ::setrlimit(RLIMIT_AS, &before);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "left of the address space (ulimit -v); lower model.d_model from 4000 to "));
  CHECK_FALSE(fs::exists("no"));
}

TEST_CASE("what threads take of a limited address space is foreseen, and little") {
  workplace();
  put("threads.json", R"({"data": {"task": "copy", "tokenizer": "whitespace"},
    "model": {"d_model": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 64},
    "training": {"steps": 2, "batch_tokens": 4096, "validate_every": 2, "validation_sentences": 20}})");
  const auto run = [](int mebibytes) {
    const std::string command = "ulimit -v " + std::to_string(1024 * mebibytes) + "; exec '" WEFT_BINARY "'" +
                                " train threads.json --run threads --threads 8 > threads.out 2> threads.err";
    const int status = std::system(command.c_str());
    CAPTURE(mebibytes);
    CAPTURE(bytes_of("threads.err"));
    CHECK((status == 0) == fs::exists("threads"));  // a run that begins ends well
    CHECK(lines_of(bytes_of("threads.err")).size() == (status == 0 ? 0 : 1));
    fs::remove_all("threads");
    return status;
  };
  for (const int mebibytes : {108, 124, 140}) run(mebibytes);
  for (const int mebibytes : {220, 280, 300}) CHECK(run(mebibytes) == 0);  // not with heaps that take 64 MiB each
}

TEST_CASE("a run that goes on where there is less memory is told what it can do") {
  workplace();
  put("large.json", R"({"data": {"task": "copy", "tokenizer": "whitespace", "pairs": 8000},
    "model": {"d_model": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 256},
    "training": {"steps": 10000, "batch_tokens": 60000, "validate_every": 10000, "validation_sentences": 20,
                 "on_divergence": "rollback"}})");  // which saves before its first update
  const std::string train = "'" WEFT_BINARY "' train large.json --run large --threads 1 > large.out 2> large.err";
  CHECK(WEXITSTATUS(std::system((train + " & run=$!; while [ ! -e large/last.safetensors ] && kill -0 $run; do sleep " +
                                 "0.02; done; kill -9 $run; wait $run")
                                    .c_str())) == 137);
  REQUIRE(fs::exists("large/last.safetensors"));
  CHECK(WEXITSTATUS(std::system(("ulimit -v 110000; exec " + train).c_str())) == 2);
  const std::string error = bytes_of("large.err");
  CAPTURE(error);
  CHECK(lines_of(error).size() == 1);
  CHECK(contains(error, "lower training.batch_tokens from 60000 to "));
  CHECK(contains(error, "the run in large keeps its configuration, so free memory for it"));
}
#endif

TEST_CASE("room is the least of what machine, control groups and limits leave") {
  const TemporaryFolder root;
  const auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    put(root / path, text);
  };
  CHECK(memory_room(root.path()).bytes > Index{1} << 50);  // nothing is known
  write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n");
  CHECK(memory_room(root.path()).bytes == 5000 * 1024);
  CHECK(memory_room(root.path()).limit == "free on this machine");
  // Version 2: the group above sets the limit; what the system would drop first counts as free.
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", "max\n");
  write("sys/fs/cgroup/user/job/memory.current", "1000000\n");
  CHECK(memory_room(root.path()).bytes == 5000 * 1024);
  write("sys/fs/cgroup/user/memory.max", "4000000\n");
  write("sys/fs/cgroup/user/memory.current", "1500000\n");
  write("sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 500000\n");
  CHECK(memory_room(root.path()).bytes == 3'000'000);
  CHECK(contains(memory_room(root.path()).limit, "control group"));
  // Version 1, whose files may lie at the top alone, as in a container.
  write("proc/self/cgroup", "5:cpu:/a\n4:hugetlb,memory:/docker/x\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2900000\n");
  write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 100000\n");
  CHECK(memory_room(root.path()).bytes == 200'000);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(memory_room(root.path()).bytes == 5000 * 1024);
  CHECK(resident_memory().now > kMega);
  CHECK(resident_memory().peak >= resident_memory().now);
}

// Averages of checkpoints, by the library and by weft average.
#include "weft/train/average.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>

#include "cli.h"
#include "session.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/train/kept_checkpoints.h"

using namespace weft;
using weft::cli::check_refused;
using weft::cli::run_weft;
using weft::cli::trained;

namespace fs = std::filesystem;

namespace {

/// A checkpoint of tiny_config with parameters that a seed moves off their beginning.
void save_with_seed(const fs::path& path, std::uint64_t seed, const std::vector<std::string>& overrides = {}) {
  const auto model = tiny_model(tiny_config(overrides));
  Random random(seed);
  for (const ParameterEntry& entry : model->parameters().entries()) {
    Tensor part = model->parameters().value(entry);
    for (real& value : part.values()) value += static_cast<real>(random.uniform());
  }
  TrainingState state;
  state.step = static_cast<Index>(seed);
  save_checkpoint(path, *model, state, nullptr);
}

std::vector<real> parameters_of(const fs::path& path) {
  const Checkpoint checkpoint = load_checkpoint(path, standard_layers());
  const Tensor values = checkpoint.model->parameters().values();
  return {values.values().begin(), values.values().end()};
}

/// A run of a few updates that keeps its last three and its best two validations.
const std::string& run_with_steps() {
  static const std::string folder = [] {
    trained();
    const auto outcome =
        run_weft({"train", "tiny.json", "--run", "kept", "--quiet", "--set", "training.steps=60", "--set",
                  "training.validate_every=10", "--set", "training.keep_last=3", "--set", "training.keep_best=2"});
    REQUIRE(outcome.code == 0);
    return std::string("kept");
  }();
  return folder;
}

}  // namespace

TEST_CASE("the average of copies of a checkpoint is the checkpoint, byte by byte") {
  const TemporaryFolder folder;
  save_with_seed(folder / "a", 3);
  for (const std::size_t copies : {1u, 2u, 3u, 7u}) {
    const Checkpoint average = average_checkpoints(std::vector<fs::path>(copies, folder / "a"), standard_layers());
    save_checkpoint(folder / "b", *average.model, average.state, nullptr);
    CHECK(bytes_of(folder / "b") == bytes_of(folder / "a"));
  }
}

TEST_CASE("each parameter is the mean, the rest that of the last checkpoint") {
  const TemporaryFolder folder;
  for (const std::uint64_t seed : {1u, 2u, 3u}) save_with_seed(folder / std::to_string(seed), seed);
  const Checkpoint average = average_checkpoints({folder / "1", folder / "3", folder / "2"}, standard_layers());
  CHECK(average.state.step == 2);
  const auto a = parameters_of(folder / "1"), b = parameters_of(folder / "2"), c = parameters_of(folder / "3");
  const Tensor mean = average.model->parameters().values();
  double worst = 0, spread = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double expected = (double{a[i]} + double{b[i]} + double{c[i]}) / 3;
    worst = std::max(worst, std::abs(double{mean.values()[i]} - expected));
    spread = std::max(spread, std::abs(double{a[i]} - expected));
  }
  CHECK(worst < 2e-7);  // the rounding of a float of about 1
  CHECK(spread > 0.1);
}

TEST_CASE("checkpoints that are not of one model are refused, naming what differs") {
  const TemporaryFolder folder;
  save_with_seed(folder / "a", 1);
  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& text) {
    save_with_seed(folder / "b", 2, overrides);
    CHECK_THROWS_SAYING(average_checkpoints({folder / "b", folder / "a"}, standard_layers()), text, CheckpointError);
  };
  refused({"model.d_model=32"}, "model.d_model: 16 -> 32");
  refused({"model.norm_first=true"}, "model.norm_first: false -> true");
  refused({"data.tokenizer=character"}, "data.tokenizer");
  refused({"data.max_vocabulary=6"}, "another source vocabulary");
  save_with_seed(folder / "b", 2, {"training.steps=7"});  // how it was trained may differ
  CHECK(average_checkpoints({folder / "b", folder / "a"}, standard_layers()).state.step == 1);
}

TEST_CASE("weft average averages named checkpoints, and those that a run has kept") {
  const std::string run = run_with_steps();
  const auto state = load_checkpoint(run + "/last.safetensors", standard_layers()).state;
  REQUIRE(state.validations.size() == 6);
  const std::string last[]{run + "/step-40.safetensors", run + "/step-50.safetensors", run + "/step-60.safetensors"};
  auto outcome = run_weft({"average", "three", last[0], last[1], last[2]});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "three: the average of " + last[0] + ", " + last[1]));
  CHECK(run_weft({"average", "--run", run, "--last", "3", "--output", "of run"}).code == 0);
  CHECK(bytes_of("of run") == bytes_of("three"));
  const Checkpoint expected = average_checkpoints({last[0], last[1], last[2]}, standard_layers());
  const Tensor values = expected.model->parameters().values();
  CHECK(parameters_of("three") == std::vector<real>(values.values().begin(), values.values().end()));

  CHECK(run_weft({"average", "--run", run, "--best", "1", "--output", "best one"}).code == 0);
  CHECK(bytes_of("best one") == bytes_of(run + "/best.safetensors"));
  CHECK(run_weft({"average", "--run", run, "--best", "2", "--output", "best one"}).code == 0);
  CHECK(bytes_of("best one") != bytes_of(run + "/best.safetensors"));
  CHECK(run_weft({"evaluate", "best one"}).code == 0);

  // A run's own checkpoints are no averages to be made anew, whatever run and whatever name leads to them.
  const std::string other = trained();
  const std::string before = bytes_of(other);
  check_refused({"average", "--run", run, "--best", "2", "--output", other}, {other + " is not an average"});
  std::filesystem::create_symlink(other, "linked");
  check_refused({"average", "--run", run, "--best", "2", "--output", "linked"}, {"linked is not an average"});
  CHECK(bytes_of(other) == before);

  // last.safetensors has the optimizer's state besides; the average has not.
  CHECK(run_weft({"average", "of last", run + "/last.safetensors"}).code == 0);
  CHECK(bytes_of("of last") == bytes_of(last[2]));
}

TEST_CASE("weft average takes no checkpoint of another step for that of a validation") {
  run_with_steps();
  fs::copy("kept", "killed", fs::copy_options::recursive);
  const auto replace = [](const std::string& name) {
    fs::copy_file("kept/step-60.safetensors", "killed/" + name, fs::copy_options::overwrite_existing);
  };
  replace("step-50.safetensors");
  check_refused({"average", "--run", "killed", "--last", "2", "--output", "x"},
                {"killed/step-50.safetensors: holds step 60", "at step 50"});
  Checkpoint last = load_checkpoint("kept/last.safetensors", standard_layers());
  last.state.best_step = 50;
  save_checkpoint("killed/last.safetensors", *last.model, last.state, nullptr);
  fs::remove("killed/step-50.safetensors");
  replace("best.safetensors");
  check_refused({"average", "--run", "killed", "--last", "2", "--output", "x"},
                {"killed/best.safetensors: holds step 60", "at step 50"});
}

TEST_CASE("an average of a run that goes on meanwhile is of the validations that it says") {
  run_with_steps();
  const FileCalls before = file_calls();
  static int opened, at;
  // The run as it stood after step 50 makes its validation at step 60 when a file is opened, for the so many-th time.
  const auto average = [&](const std::string& file, int opening) {
    fs::remove_all("live");
    fs::create_directory("live");
    for (const char* name : {"step-40.safetensors", "step-50.safetensors"}) {
      fs::copy_file(fs::path("kept") / name, fs::path("live") / name);
    }
    Checkpoint last = load_checkpoint("kept/step-50.safetensors", standard_layers());
    last.state.best_step = 50;
    save_checkpoint("live/last.safetensors", *last.model, last.state, nullptr);
    if (file == "best.safetensors") fs::rename("live/step-50.safetensors", "live/best.safetensors");
    opened = 0;
    at = opening;
    static std::string watched;
    watched = "live/" + file;
    file_calls().open = [](const char* path, int flags, mode_t mode) {
      if (path == watched && ++opened == at) {
        fs::remove("live/step-40.safetensors");
        const auto everything = fs::copy_options::overwrite_existing;
        fs::copy_file("kept/step-50.safetensors", "live/step-50.safetensors", everything);
        for (const char* name : {"live/step-60.safetensors", "live/best.safetensors", "live/last.safetensors"}) {
          fs::copy_file("kept/step-60.safetensors", name, everything);
        }
      }
      return ::open(path, flags, mode);
    };
    RunAverage result = average_run("live", false, 2, standard_layers());
    file_calls() = before;
    CHECK(opened >= at);
    CHECK(result.paths == std::vector<fs::path>{"live/step-50.safetensors", "live/step-60.safetensors"});
    const Checkpoint expected =
        average_checkpoints({"kept/step-50.safetensors", "kept/step-60.safetensors"}, standard_layers());
    const Tensor values = expected.model->parameters().values(), found = result.checkpoint.model->parameters().values();
    CHECK(std::equal(values.values().begin(), values.values().end(), found.values().begin()));
  };
  for (const int opening : {1, 2}) {  // as it is chosen, and as it is loaded
    CAPTURE(opening);
    average("step-40.safetensors", opening);
    average("best.safetensors", opening);
  }
  fs::remove("live/step-50.safetensors");
  check_refused(
      {"average", "--run", "live", "--last", "2", "--output", "x"},
      {"live/step-50.safetensors: is gone, though the run keeps it; if weft train is at work there, try again"});
}

TEST_CASE("weft average refuses what it cannot do, in one line") {
  const std::string run = run_with_steps(), best = trained();
  check_refused({"average"}, {"expected OUT and at least one CHECKPOINT, found 0"});
  check_refused({"average", "x"}, {"found 1"});
  check_refused({"average", best, "tiny/last.safetensors"}, {best + " exists"});
  check_refused({"average", "x", "missing"}, {"missing"});
  check_refused({"average", "x", best, "--best", "2"}, {"--best goes with --run only"});
  check_refused({"average", "--run", run, "--output", "x"}, {"--run needs one of --best and --last"});
  check_refused({"average", "--run", run, "--output", "x", "--best", "1", "--last", "1"}, {"one of --best and --last"});
  check_refused({"average", "--run", run, "--last", "1"}, {"--output is missing"});
  check_refused({"average", "--run", run, "--last", "0", "--output", "x"}, {"--last is \"0\""});
  check_refused({"average", "--run", run, "--last", "7", "--output", "x"},
                {"7 validations are asked for, the run has made 6"});
  check_refused({"average", "--run", run, "--last", "6", "--output", "x"},
                {"keeps the best 2 and the last 3", "training.keep_last"});
  for (const std::string name : {"last.safetensors", "best.safetensors", "step-60.safetensors", "rollback.safetensors",
                                 "config.json", "log.jsonl"}) {
    check_refused({"average", "--run", run, "--last", "2", "--output", run + "/" + name}, {name, "name another file"});
  }
  check_refused({"average", "--run", "nowhere", "--last", "1", "--output", "x"}, {"nowhere"});
  check_refused({"average", "--run", run, "--last", "1", "--output", "x", best}, {"is one too many"});
}

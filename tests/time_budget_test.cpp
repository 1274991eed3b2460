// Runs that fit into a given time.
#include "weft/train/time_budget.h"

#include "cli.h"
#include "session.h"

using namespace weft;
using namespace weft::cli;

TEST_CASE("as many updates as fit with their validations") {
  const auto fits = [](double seconds, Index validate_every) {
    return updates_within(seconds, {0.5, 3}, validate_every, 1000);
  };
  CHECK(fits(8, 100) == 10);  // 5 and one validation
  CHECK(fits(7.9, 100) == 9);
  CHECK(fits(16, 10) == 20);  // 10 and two validations
  CHECK(fits(15.9, 10) == 19);
  CHECK(fits(11.4, 10) == 10);  // the eleventh would need a second validation
  CHECK(fits(10.9, 4) == 8);
  CHECK(fits(1e9, 10) == 1000);
  CHECK(fits(0, 10) == 1);
  CHECK(fits(-5, 10) == 1);
  CHECK(updates_within(100, {0, 0}, 10, 7) == 7);
}

TEST_CASE("measuring leaves parameters as they were and a run the same") {
  const auto model = tiny_model(tiny_config());
  const TrainingData data = tiny_data(*model, letters(60, 5), letters(10, 6));
  const Tensor values = model->parameters().values();
  const std::vector<real> before(values.values().begin(), values.values().end());
  CHECK(measure_update(*model, data.train, 0) > 0);
  CHECK(measure_validation(*model, data.valid, data.valid_text) > 0);
  CHECK(std::vector<real>(values.values().begin(), values.values().end()) == before);

  // Also of a run that diverges at once.
  const auto wild = tiny_model(tiny_config({"optimizer.learning_rate=1e30", "schedule.name=constant"}));
  const Tensor wild_values = wild->parameters().values();
  const std::vector<real> wild_before(wild_values.values().begin(), wild_values.values().end());
  CHECK(measure_update(*wild, data.train, 0.5) > 0);
  CHECK(std::vector<real>(wild_values.values().begin(), wild_values.values().end()) == wild_before);
}

TEST_CASE(
    "a run whose time is over ends with a validation and all saved, and "
    "stays ended") {
  const Config config = tiny_config({"training.minutes=1"});
  const TemporaryFolder folder, enough, plain;
  {
    Session session(folder.path(), config);
    session.trainer().end_within(0, 0);
    CHECK(session.finish() == TrainingEnd::kOutOfTime);
    CHECK(session.trainer().state().step == 1);
  }
  CHECK(fs::exists(folder / "best.safetensors"));
  const Checkpoint last = load_checkpoint(folder / "last.safetensors", standard_layers());
  CHECK(last.state.validations.size() == 1);
  CHECK(last.state.best_step == 1);
  CHECK(training_end(last.state, config.training) == TrainingEnd::kOutOfTime);

  // Time enough changes nothing.
  Session session(enough.path(), config);
  session.trainer().end_within(1e6, 1);
  CHECK(session.finish() == TrainingEnd::kDone);
  Session(plain.path(), config).finish();
  CHECK(bytes_of(enough / "last.safetensors") == bytes_of(plain / "last.safetensors"));
}

TEST_CASE(
    "weft train --minutes writes down the steps that it chose; told "
    "them, the run is the same") {
  trained();
  const Words words{"train", "tiny.json", "--set", "schedule.name=cosine", "--set", "training.validate_every=50"};
  const Words timed = words + Words{"--run", "timed", "--minutes", "0.03"};
  const auto outcome = run_weft(timed);
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Checkpoint last = load_checkpoint("timed/last.safetensors", standard_layers());
  const Index steps = last.model->config().training.steps;
  const std::string told = "--set training.steps=" + std::to_string(steps);
  CHECK(contains(outcome.out, "time budget      0.03 minutes: "));
  CHECK(contains(outcome.out, "--minutes 0 " + told + "\n"));
  CHECK(load_config("timed/config.json").training.steps == steps);
  CHECK(fs::exists("timed/best.safetensors"));
  CHECK((last.state.step == steps || last.state.out_of_time));
  CHECK(last.state.validations.back().step == last.state.step);

  const auto again = run_weft(timed);
  CHECK(again.code == 0);
  CHECK(contains(again.out, "timed is trained to its end, step " + std::to_string(last.state.step)));

  CHECK(run_weft(words + Words{"--run", "told", "--quiet", "--minutes", "0", "--set",
                               "training.steps=" + std::to_string(steps)})
            .code == 0);
  if (last.state.out_of_time) return;  // on a busy computer the clock may come first
  const Checkpoint same = load_checkpoint("told/last.safetensors", standard_layers());
  const Tensor a = last.model->parameters().values(), b = same.model->parameters().values();
  CHECK(std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end()));
}

TEST_CASE("a run that was stopped goes on with the steps that it had chosen") {
  trained();
  const Words words{"train", "tiny.json", "--run", "resumed", "--minutes", "0.05", "--set", "training.log_every=1"};
  {
    const Background run(words);
    for (int i = 0; i < 20'000 && bytes_of("resumed/log.jsonl").empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    run.send(SIGTERM);
    REQUIRE(run.wait().code == 128 + SIGTERM);
  }
  const Index steps = load_config("resumed/config.json").training.steps;
  const Outcome rest = run_weft(words);
  CAPTURE(rest.err);
  CHECK(rest.code == 0);
  CHECK(contains(rest.out, "going on after step "));
  CHECK_FALSE(contains(rest.out, "time budget"));  // nothing is measured anew
  const Checkpoint last = load_checkpoint("resumed/last.safetensors", standard_layers());
  CHECK(last.model->config().training.steps == steps);
  CHECK(training_end(last.state, last.model->config().training).has_value());
  const Outcome other =
      run_weft({"train", "tiny.json", "--run", "resumed", "--minutes", "9", "--set", "training.log_every=1"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "training.minutes: 0.05 -> 9\n"));
  CHECK_FALSE(contains(other.err, "training.steps"));
}

TEST_CASE("bad minutes are refused in one line") {
  trained();
  check_refused({"train", "tiny.json", "--run", "no", "--minutes", "soon"},
                {"--minutes is \"soon\"; must be a number"});
  check_refused({"train", "tiny.json", "--run", "no", "--minutes", "-1"}, {"--minutes"});
  check_refused({"train", "tiny.json", "--run", "no", "--set", "training.minutes=-1"}, {"training.minutes is -1"});
}

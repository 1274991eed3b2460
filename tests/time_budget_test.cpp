// Runs that fit into a given time.
#include "weft/train/time_budget.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "cli.h"
#include "faulty_run.h"
#include "session.h"
#include "throws.h"
#include "weft/train/run_folder.h"
#include "weft/train/spent_time.h"

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
  CHECK(measure_update(*model, data.train, 0) > 0);  // one update alone
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

TEST_CASE("a time budget counts all that was done before, though no line of the log tells of it") {
  const Config config = tiny_config({"training.log_every=1000", "training.steps=2000"});
  const TemporaryFolder folder;
  const fs::path file = folder / kSpentFile;
  const auto spoil = [&] { std::fstream(file, std::ios::in | std::ios::out) << "x"; };  // the file that is open stays
  {
    Session session(folder.path(), config);
    session.trainer().end_within(1e6, 0, 1000);
    CHECK(read_spent_seconds(file) >= 1000);  // the start
    spoil();
    CHECK(read_spent_seconds(file) == 0);
    CHECK(session.one_update() == TrainingEnd::kStopped);
    CHECK(read_spent_seconds(file) >= 1000);  // what a kill leaves
    spoil();
  }
  CHECK(read_spent_seconds(file) >= 1000);  // what any other end does
  CHECK(bytes_of(folder / "log.jsonl").empty());
  {
    Session session(folder.path(), config);
    session.trainer().end_within(1500, 0, 600);  // 1000 then, 600 now
    CHECK(session.trainer().elapsed_seconds() >= 1600);
    CHECK(session.finish() == TrainingEnd::kOutOfTime);
    CHECK(session.trainer().state().step == 2);
  }
  CHECK(read_spent_seconds(file) >= 1600);
  clean_run_folder(folder.path(), {}, true);
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("what the next update may take is the second longest of the last sixteen") {
  ExpectedTime time;
  const auto after = [&](double seconds) {
    time.take(seconds);
    return time.seconds();
  };
  CHECK(time.seconds() == 0);
  CHECK(after(3) == 3);
  CHECK(after(1) == 1);
  CHECK(after(2) == 2);
  CHECK(after(100) == 3);
  for (int i = 0; i < 13; ++i) CHECK(after(1) == (i < 12 ? 3 : 2));
  CHECK(after(1) == 2);
  CHECK(after(1) == 1);
  CHECK(after(50) == 1);
  CHECK(after(40) == 40);
}

TEST_CASE("one update or validation for which the machine stood still does not end a run") {
  for (const auto kind : {Fault::Kind::kResult, Fault::Kind::kValidation}) {
    const bool validates = kind == Fault::Kind::kValidation;
    CAPTURE(validates);
    bool paused = false;
    const Faulty pause(kind, [&](std::uint64_t step, const Var&) {
      if (!paused && (validates || step == 2)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
        paused = true;
      }
      return false;
    });
    const TemporaryFolder folder;
    Session session(folder.path(), tiny_config({"model.feed_forward=faulty", "training.validate_every=4"}),
                    faulty_layers());
    session.trainer().end_within(0.5, 0.001);
    session.finish();
    CHECK(paused);
    CHECK(session.trainer().state().step > (validates ? 5 : 3));  // how many more depends on the machine
  }
}

TEST_CASE("a run that begins has spent nothing, whatever one that was killed before its first checkpoint left") {
  const TemporaryFolder folder;
  folder.write(kSpentFile, "1e9\n");
  Session session(folder.path(), tiny_config());
  session.trainer().end_within(1e6, 1);
  CHECK(session.trainer().elapsed_seconds() < 1e6);
  CHECK(session.finish() == TrainingEnd::kDone);
}

TEST_CASE("a file of seconds that says none counts for nothing") {
  const TemporaryFolder folder;
  const auto read = [&](const char* text) { return read_spent_seconds(folder.write("file", text)); };
  CHECK(read_spent_seconds(folder / "none") == 0);
  CHECK(read("000000000012.500\n") == 12.5);
  CHECK(read("12.5\nmore") == 12.5);
  for (const char* const text : {"", "\n", "12.5", "12.5 \n", "-3\n", "nan\n", "inf\n", "1e999\n", "soon\n"}) {
    CAPTURE(text);
    CHECK(read(text) == 0);
  }
  CHECK_THROWS_SAYING(read_spent_seconds(folder.path()), folder.path().string(), Error);
  CHECK_THROWS_SAYING(SpentTime(folder / "none" / "file", 0), "cannot be written: No such file", Error);
}

TEST_CASE("a session makes a file of seconds of its own, and none can stop a run") {
  const TemporaryFolder folder, blocked;
  const fs::path file = folder.write(kSpentFile, "000000000012.500\n"), copy = folder / "copy";
  fs::create_hard_link(file, copy);
  fs::permissions(file, fs::perms::owner_read);
  {
    const SpentTime spent(file, 20);
    CHECK(read_spent_seconds(file) == 20);
    spent.write(30);
  }
  CHECK(read_spent_seconds(file) == 30);
  CHECK(read_spent_seconds(copy) == 12.5);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);

  fs::create_directories(blocked / kSpentFile / "in the way");
  Session session(blocked.path(), tiny_config());
  session.trainer().end_within(1e6, 0);
  CHECK(session.finish() == TrainingEnd::kDone);
}

TEST_CASE("the time that is left is never said to be more than the budget has") {
  const Config config = tiny_config({"training.log_every=1", "training.steps=2000"});
  const auto model = tiny_model(config);
  const TemporaryFolder folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  REQUIRE(out != nullptr);
  {
    Progress progress(out, false, 1);
    Trainer trainer(*model, {}, tiny_data(*model, letters(60, 5), letters(10, 6)), folder.path(), progress);
    trainer.end_within(1e5, 0, 9e4);  // at this pace 2000 updates would take years
    CHECK(trainer.run(kStopAtOnce) == TrainingEnd::kStopped);
  }
  std::fclose(out);
  CHECK(contains(bytes_of(folder / "out"), "  2h 47m left\n"));
}

TEST_CASE("a run that is asked for another length says how to train on from it, and that command works") {
  trained();
  const auto follow = [](const Outcome& refused, const std::string& expected) {
    CAPTURE(refused.err);
    CHECK(refused.code == 2);
    const std::string words = "or train on from its parameters in a new run: weft ";
    const std::size_t at = refused.err.find(words);
    REQUIRE(at != std::string::npos);
    const std::string command = lines_of(refused.err.substr(at + words.size())).at(0);
    CHECK(command == expected);
    std::istringstream stream(command);
    const Outcome outcome = run_weft(Words(std::istream_iterator<std::string>(stream), {}));
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(contains(outcome.out, "warm start"));
  };
  const Words words{"train", "tiny.json", "--threads", "1", "--run"};
  REQUIRE(run_weft(words + Words{"brief", "--minutes", "0.005"}).code == 0);
  const std::string brief = "train tiny.json --minutes 0.007 --threads 1 --from brief/last.safetensors --run brief-";
  follow(run_weft(words + Words{"brief", "--minutes", "0.007"}), brief + "2");
  CHECK(contains(run_weft(words + Words{"brief/", "--minutes", "0.007"}).err, brief + "3\n"));
  follow(run_weft(words + Words{"tiny", "--set", "training.steps=301"}),
         "train tiny.json --set training.steps=301 --threads 1 --from tiny/last.safetensors --run tiny-2");
  // Where more differs than the length, that is not what is wanted.
  const Outcome other =
      run_weft(words + Words{"tiny", "--set", "training.steps=301", "--set", "training.label_smoothing=0.1"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "training.steps: 300 -> 301\n"));
  CHECK_FALSE(contains(other.err, "train on"));
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
  const double logged = read_run_log("resumed/log.jsonl").steps.back().elapsed_seconds;
  CHECK(read_spent_seconds("resumed/spent_seconds.txt") + 0.001 > logged);  // it is rounded
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

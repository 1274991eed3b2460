// What is done about numbers that are not finite and losses that explode: none reaches a checkpoint, and each policy is the
// same for a run stopped or killed anywhere.
#include "weft/train/divergence.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "faulty_run.h"
#include "weft/core/file_calls.h"
#include "weft/train/loss_watch.h"
#include "weft/train/run_folder.h"
#include "weft/train/run_texts.h"

using namespace weft;
namespace fs = std::filesystem;

TEST_CASE("skipped updates change nothing, are counted and logged, and a run with some is resumed exactly") {
  const Faulty faulty(Fault::Kind::kGradient,
                      [](std::uint64_t step, const Var&) { return step == 4 || step == 5 || step == 12; });
  const Config config = with_policy("skip", {"training.log_every=1"});
  const TemporaryFolder folder;
  {
    Session session(folder.path(), config, faulty_layers());
    for (int i = 0; i < 4; ++i) session.one_update();
    const std::vector<real> before = session.parameters();
    session.one_update();
    CHECK(session.trainer().state().skipped == 1);
    session.one_update();
    CHECK(session.trainer().state().skipped_in_row == 2);
    CHECK((session.parameters() == before));
    session.one_update();
    CHECK(session.trainer().state().skipped_in_row == 0);
    CHECK((session.parameters() != before));
    CHECK(session.finish() == TrainingEnd::kDone);
    CHECK(session.trainer().state().skipped == 3);
  }
  check_all_finite(folder.path());
  const auto log = read_run_log((folder / "log.jsonl").string());
  REQUIRE(log.steps.size() == 20);
  for (const StepEntry& entry : log.steps) {
    CHECK(std::isfinite(entry.loss) == (entry.step != 5 && entry.step != 6 && entry.step != 13));
    CHECK(std::isfinite(entry.learning_rate));
  }
  REQUIRE(log.events.size() == 3);
  CHECK(log.events[2].step == 13);
  CHECK(log.events[2].event == "skipped");
  CHECK(log.events[2].count == 3);
  CHECK(contains(log.events[2].text, "op faulty (backward"));
  check_resumable(config, folder.path(), {1, 4});
}

TEST_CASE("too many skipped updates in a row stop the run, and one in between does not count") {
  const Config config = with_policy("skip", {"training.steps=40"});
  {
    const Faulty faulty(Fault::Kind::kResult, [](std::uint64_t step, const Var&) { return step >= 3; });
    const TemporaryFolder folder;
    Session session(folder.path(), config, faulty_layers());
    const std::string text = error_of(session);
    CHECK(text.starts_with("step 14: "));
    CHECK(contains(text, "10 updates in a row were left out"));
    CHECK(events(folder.path()).size() == 11);
    check_all_finite(folder.path());
  }
  const Faulty faulty(Fault::Kind::kResult, [](std::uint64_t step, const Var&) { return step % 11 != 0; });
  const TemporaryFolder folder;
  Session session(folder.path(), config, faulty_layers());
  CHECK(session.finish() == TrainingEnd::kDone);
  CHECK(session.trainer().state().skipped == 36);
}

TEST_CASE("a rollback goes on from the last checkpoint with other text at half the rate, and is resumed exactly") {
  // The text fails, not the step: a batch of so many source rows in update 12.
  std::map<std::uint64_t, Index> rows;
  {
    const Faulty faulty(Fault::Kind::kResult, [&](std::uint64_t step, const Var& x) {
      rows[step] = x.rows();
      return false;
    });
    const TemporaryFolder folder;
    Session(folder.path(), faulty_config(), faulty_layers()).finish();
  }
  int failures = 0;
  const Index bad = rows.at(11);
  const Faulty faulty(Fault::Kind::kGradient, [&](std::uint64_t step, const Var& x) {
    const bool now = step == 11 && x.rows() == bad;
    failures += now ? 1 : 0;
    return now;
  });
  const Config config = with_policy("rollback", {"training.log_every=1"});
  const TemporaryFolder folder;
  Session session(folder.path(), config, faulty_layers());
  CHECK(session.finish() == TrainingEnd::kDone);
  CHECK(failures == 2);  // the update and its replay
  CHECK(session.trainer().state().rollbacks == 1);
  check_all_finite(folder.path());
  const auto log = read_run_log((folder / "log.jsonl").string());
  REQUIRE(log.steps.size() == 20);  // the steps that were given up are not in the log twice
  const ScheduleOptions schedule{"inverse_sqrt", 10, 20, 0.01, 0, 16};
  for (const StepEntry& entry : log.steps) {
    CHECK(entry.learning_rate == (entry.step <= 8 ? 1.0 : 0.5) * learning_rate(schedule, entry.step));
  }
  REQUIRE(log.events.size() == 1);
  CHECK(log.events[0].event == "rollback");
  CHECK(log.events[0].step == 8);
  CHECK(contains(log.events[0].text, "step 12: "));
  CHECK(contains(log.events[0].text, "back to step 8"));
  // Four updates were made for nothing, so the text is that much further.
  const TemporaryFolder plain;
  {
    const Faulty none(Fault::Kind::kGradient, [](std::uint64_t, const Var&) { return false; });
    Session other(plain.path(), with_policy("rollback", {"training.steps=24"}), faulty_layers());
    other.finish();
    CHECK(other.trainer().state().epoch == session.trainer().state().epoch);
    CHECK(other.trainer().state().next_batch == session.trainer().state().next_batch);
  }
}

TEST_CASE("a rollback brings back parameters, optimizer and average") {
  const Faulty faulty(Fault::Kind::kGradient, at(11));
  const Config config = with_policy("rollback");
  const auto tensors = [](const fs::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    std::map<std::string, std::vector<real>> all;
    for (const SafetensorsEntry& entry : file.entries()) {
      std::vector<real>& values = all[entry.name];
      values.resize(static_cast<std::size_t>(entry.elements()));
      file.read(entry.name, values);
    }
    return all;
  };
  const TemporaryFolder folder;
  train_for(folder.path(), config, 8);
  const auto before = tensors(folder / "last.safetensors");
  CHECK(before.count("average.values") == 1);
  CHECK(before.count("optimizer.second_moment") == 1);
  train_for(folder.path(), config, 4);
  CHECK(load_state(folder / "last.safetensors").rollbacks == 1);
  CHECK(load_state(folder / "last.safetensors").step == 8);
  CHECK((tensors(folder / "last.safetensors") == before));
}

TEST_CASE("a run with rollbacks, stopped or killed anywhere, ends as one never stopped") {
  const Faulty faulty(Fault::Kind::kGradient,
                      [](std::uint64_t step, const Var& x) { return step >= 9 && step < 16 && x.rows() % 5 == 0; });
  const Config config = with_policy("rollback", {"training.save_every=3"});
  const TemporaryFolder straight;
  {
    Session session(straight.path(), config, faulty_layers());
    REQUIRE(session.finish() == TrainingEnd::kDone);
    REQUIRE(session.trainer().state().rollbacks >= 2);
  }
  check_all_finite(straight.path());
  check_resumable(config, straight.path(), {1, 5});
  // Killed: the files are those of some time before, and the log is ahead of them.
  const auto expected = results(straight.path());
  for (const auto& [saved, ahead] :
       {std::pair(4, 12), std::pair(8, 8), std::pair(9, 8), std::pair(10, 5), std::pair(12, 5), std::pair(17, 30)}) {
    const int before_kill = saved;  // clang 14 cannot capture a name of a pair
    CAPTURE(before_kill);
    const TemporaryFolder folder;
    train_for(folder.path(), config, saved);
    std::map<std::string, std::string> before = results(folder.path());
    before.erase("log");
    train_for(folder.path(), config, ahead);
    fs::remove(folder / kRollbackFile);
    for (const auto& [name, bytes] : before) put(folder / name, bytes);
    CHECK(train_for(folder.path(), config, 1000) == TrainingEnd::kDone);
    check_same(folder.path(), expected);
  }
}

TEST_CASE("a rollback follows a last checkpoint that is a link to another place") {
  const Config config = with_policy("rollback");
  const auto run = [&](const fs::path& folder, const fs::path& target) {
    int failures = 0;  // of an update and its replay
    const Faulty faulty(Fault::Kind::kGradient,
                        [&](std::uint64_t step, const Var&) { return step == 11 && ++failures < 3; });
    train_for(folder, config, 8);
    if (!target.empty()) {
      fs::rename(folder / "last.safetensors", target);
      fs::create_symlink(target, folder / "last.safetensors");
    }
    train_for(folder, config, 2);  // saves step 10, which is no place to go back to
    while (train_for(folder, config, 1000) != TrainingEnd::kDone) continue;
    CHECK(load_state(folder / "last.safetensors").rollbacks == 1);
    return results(folder);
  };
  const TemporaryFolder plain, linked, elsewhere;
  const auto expected = run(plain.path(), "");
  run(linked.path(), elsewhere / "kept.safetensors");
  CHECK(fs::is_symlink(linked / "last.safetensors"));
  check_same(linked.path(), expected);
}

TEST_CASE("a stop at a bad number saves nothing and changes nothing: it is met where a run never stopped meets it") {
  if (sizeof(real) == sizeof(double)) return;
  for (const auto& all :
       {std::pair("stop", 2u), std::pair("stop", 9u), std::pair("skip", 9u), std::pair("rollback", 9u)}) {
    const std::string policy = all.first;
    const std::uint64_t bad = all.second;
    CAPTURE(policy);
    CAPTURE(bad);
    Index rows = 0;  // of the text that fails
    const auto fails = [&](std::uint64_t step, const Var& x) {
      if (step == bad && rows == 0) rows = x.rows();
      return step == bad && x.rows() == rows;
    };
    // Its square is over what a float holds, which no loss shows before the validation at 8 or 16.
    const Faulty faulty(Fault::Kind::kParameterGradient, fails, static_cast<real>(1e25));
    const Config config = with_policy(policy, {"optimizer.clip_norm=0"});
    const auto headline = [&](const fs::path& folder) {
      Session session(folder, config, faulty_layers());
      const std::string text = error_of(session);
      return text.substr(0, text.find('\n'));
    };
    const TemporaryFolder straight, stopped;
    const std::string expected = headline(straight.path());
    CHECK(contains(expected, "second_moment has a number that is inf") == (policy != "rollback"));
    CHECK(events(straight.path()).size() == 1);
    const int due = bad == 2 ? 0 : 8;  // the last save before that every run makes
    for (const auto& [updates, saved] : {std::pair(due + 4, due), std::pair(1, due + 1), std::pair(3, due + 1)}) {
      CHECK(train_for(stopped.path(), config, updates) == TrainingEnd::kStopped);
      const fs::path last = stopped / "last.safetensors";
      CHECK((fs::exists(last) ? load_state(last).step : 0) == saved);
    }
    {
      Session session(stopped.path(), config, faulty_layers());
      CHECK(session.one_update() == TrainingEnd::kStopped);
      CHECK(session.trainer().saved() == (bad == 2));
    }
    CHECK(headline(stopped.path()) == expected);
    if (policy == "rollback") check_same(stopped.path(), results(straight.path()));
  }
}

TEST_CASE("a stop saves though the checkpoint to go back to was taken away") {
  const TemporaryFolder folder;
  const fs::path last = folder / "last.safetensors";
  const Faulty taken(Fault::Kind::kResult, [&](std::uint64_t step, const Var&) {
    if (step == 1) fs::rename(last, folder / "taken");
    return false;
  });
  CHECK(train_for(folder.path(), with_policy("rollback"), 2) == TrainingEnd::kStopped);
  CHECK(load_state(last).step == 2);
  CHECK(load_state(last).good_step == 2);
}

TEST_CASE("a stop that cannot look at the checkpoint to go back to saves nothing") {
  const TemporaryFolder folder;
  const fs::path last = folder / "last.safetensors";
  const Faulty tangled(Fault::Kind::kResult, [&](std::uint64_t step, const Var&) {
    if (step != 1 || !fs::remove(last)) return false;
    fs::create_symlink("last.safetensors", last);  // which the system looks at in vain
    return false;
  });
  CHECK_THROWS_SAYING(train_for(folder.path(), with_policy("rollback"), 2),
                      "last.safetensors: cannot be looked at: Too many levels", Error);
  CHECK(fs::is_symlink(last));
}

TEST_CASE("what was done about divergences is said of what was done alone") {
  TrainingState state;
  CHECK(repair_text(state).empty());
  state.rollbacks = 1;
  CHECK(repair_text(state) == "went back to a checkpoint 1 time; see log.jsonl");
  state.skipped = 2;
  CHECK(repair_text(state) ==
        "2 updates left out for numbers that were not finite; went back to a checkpoint 1 time; see log.jsonl");
}

namespace {

/// Puts another run's folder in the place of a run's after a number of its files were renamed into place, or opened as
/// checkpoints.
struct Swap {
  static inline fs::path folder, other;
  static inline int left = 0;
  static inline FileCalls calls = {};

  static void count() {
    if (--left != 0) return;
    fs::rename(folder, folder.parent_path() / "moved");
    fs::rename(other, folder);
  }
  static int rename(const char* from, const char* to) {
    const int result = calls.rename(from, to);
    count();
    return result;
  }
  static int open(const char* path, int flags, mode_t mode) {
    const int result = calls.open(path, flags, mode);
    if (contains(path, ".safetensors") && !contains(path, ".tmp")) count();
    return result;
  }
};

}  // namespace

TEST_CASE("a folder that takes the place of the run's is left as it is, whenever that happens") {
  const Config config = with_policy("rollback", {"training.keep_last=1"});
  const auto trained = [&](const fs::path& folder) {
    int failures = 0;  // of an update and its replay
    const Faulty faulty(Fault::Kind::kGradient,
                        [&](std::uint64_t step, const Var&) { return step == 11 && ++failures < 3; });
    fs::create_directories(folder);
    const FolderLock lock(folder);
    const auto model = tiny_model(config, faulty_layers());
    TrainingData data = tiny_data(*model, letters(60, 5), letters(10, 6));
    data.require_folder = [&] { lock.require_held(); };
    Progress progress(stdout, true);
    return thrown_text<Error>([&] { Trainer(*model, {}, std::move(data), folder, progress).run(kNoStop); });
  };
  const TemporaryFolder another;
  trained(another / "run");
  put(another / "run" / kRollbackFile, "another's");
  const auto before = results(another / "run");
  int swaps = 0;
  for (const bool opening : {false, true}) {
    for (int after = 1;; ++after) {
      CAPTURE(opening);
      CAPTURE(after);
      const TemporaryFolder place;
      Swap::folder = place / "run", Swap::other = place / "other";
      fs::copy(another / "run", Swap::other);
      Swap::calls = file_calls();
      Swap::left = after;
      file_calls().fsync = [](int) { return 0; };  // nobody kills this
      if (opening) file_calls().open = Swap::open;
      if (!opening) file_calls().rename = Swap::rename;
      const std::string error = trained(Swap::folder);
      file_calls() = Swap::calls;
      if (Swap::left > 0) break;
      ++swaps;
      CHECK(contains(error, "another took its place"));
      CHECK((results(Swap::folder) == before));
    }
  }
  CHECK(swaps > 15);
}

TEST_CASE("rollbacks end: before the first save at the beginning, and after five by stopping") {
  const Config config = with_policy("rollback");
  {
    int failures = 0;
    const Faulty faulty(Fault::Kind::kResult, [&](std::uint64_t step, const Var&) {
      return step == 2 && ++failures <= 2;  // the second is the replay
    });
    const TemporaryFolder folder;
    Session session(folder.path(), config, faulty_layers());
    CHECK(session.finish() == TrainingEnd::kDone);
    CHECK(session.trainer().state().rollbacks == 1);
    CHECK(events(folder.path()).at(0).step == 0);
  }
  const Faulty faulty(Fault::Kind::kResult, at(9));
  const TemporaryFolder folder;
  Session session(folder.path(), config, faulty_layers());
  const std::string text = error_of(session);
  CHECK(text.starts_with("step 10: "));
  CHECK(contains(text, "went back 5 times already"));
  CHECK(events(folder.path()).size() == 6);
  check_all_finite(folder.path());
}

TEST_CASE("whatever the rate and the policy, no checkpoint holds a number that is not finite") {
  for (const std::string policy : {"stop", "skip", "rollback"}) {
    for (const std::string optimizer : {"optimizer.name=sgd", "optimizer.name=adam"}) {
      for (const std::string rate : {"optimizer.learning_rate=1e9", "optimizer.learning_rate=1e30"}) {
        CAPTURE(policy);
        CAPTURE(optimizer);
        CAPTURE(rate);
        const TemporaryFolder folder;
        const Config config = with_policy(policy, {optimizer, rate, "optimizer.clip_norm=0", "schedule.name=constant",
                                                   "schedule.warmup_steps=0", "training.save_every=1"});
        Session session(folder.path(), config, faulty_layers());
        session.one_update();
        static_cast<void>(error_of(session));
        check_all_finite(folder.path());
      }
    }
  }
}

TEST_CASE("a loss explodes when its smoothed value stays far above its least for twenty updates") {
  const auto first_alarm = [](std::initializer_list<std::pair<int, double>> runs) {
    LossWatch watch;
    int update = 0;
    for (const auto& [count, loss] : runs) {
      for (int i = 0; i < count; ++i) {
        ++update;
        if (watch.take(loss)) return update;
      }
    }
    return 0;
  };
  CHECK(first_alarm({{1000, 9.0}}) == 0);
  CHECK(first_alarm({{50, 9.0}, {500, 2.0}, {500, 2.9}}) == 0);            // worse, but not by half
  CHECK(first_alarm({{500, 0.1}, {500, 0.55}}) == 0);                      // by more than half, but by little
  CHECK(first_alarm({{50, 9.0}, {500, 2.0}, {5, 7.0}, {500, 2.0}}) == 0);  // a spike
  const int alarm = first_alarm({{50, 9.0}, {500, 2.0}, {100, 7.0}});
  // The mean passes 3 once 1 - 0.9^n > 0.2, at the third update; twenty make the alarm.
  CHECK(alarm == 550 + 3 + 19);
  LossWatch watch;
  int alarms = 0;
  for (int i = 0; i < 300; ++i) alarms += watch.take(i < 100 ? 2.0 : 7.0) ? 1 : 0;
  CHECK(alarms == 1);
  for (int i = 0; i < 600; ++i) alarms += watch.take(i < 300 ? 2.0 : 7.0) ? 1 : 0;
  CHECK(alarms == 2);
}

TEST_CASE("an explosion is warned of once and logged, or rolled back, and is resumed exactly") {
  for (const std::string policy : {"stop", "rollback"}) {
    CAPTURE(policy);
    const Config config =
        tiny_config({"training.on_divergence=" + policy, "training.steps=40", "training.validate_every=1000",
                     "optimizer.learning_rate=1e-5", "model.feed_forward=faulty"});
    const TemporaryFolder beginning, straight;
    {
      train_for(beginning.path(), config, 1);
      const Checkpoint checkpoint = load_checkpoint(beginning / "last.safetensors", faulty_layers());
      TrainingState state = checkpoint.state;
      state.good_step = state.step;
      state.loss_watch = {0.1, 0.1, 0};  // as if the loss had been that low before; it is about 2
      const auto optimizer = make_optimizer({}, checkpoint.model->parameters().values().size());
      save_checkpoint(beginning / "last.safetensors", *checkpoint.model, state, optimizer.get());
    }
    const std::string start = bytes_of(beginning / "last.safetensors");
    put(straight / "last.safetensors", start);
    Session session(straight.path(), config, faulty_layers());
    CHECK(session.finish() == TrainingEnd::kDone);
    const bool rolls = policy == "rollback";
    CHECK(session.trainer().state().rollbacks == (rolls ? 5 : 0));
    CHECK(session.trainer().state().explosions == 1);
    const auto log = events(straight.path());
    REQUIRE(log.size() == (rolls ? 6 : 1));
    CHECK(log.back().event == "explosion");
    CHECK(contains(log.back().text, "the loss explodes: smoothed it is "));
    CHECK(contains(log.back().text, "Lower optimizer.learning_rate"));
    if (rolls) {
      CHECK(log.front().event == "rollback");
      CHECK(log.front().step == 1);
    }
    const TemporaryFolder stopped;
    put(stopped / "last.safetensors", start);
    while (train_for(stopped.path(), config, 33) != TrainingEnd::kDone) continue;
    check_same(stopped.path(), results(straight.path()));
  }
}

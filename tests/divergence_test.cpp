// Numbers that are not finite: they reach no checkpoint, messages say where they come from, and what the policies do about
// them is the same for a run stopped anywhere.
#include "weft/train/divergence.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "faulty_layer.h"
#include "gzip.h"
#include "session.h"
#include "small_model.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/safetensors.h"
#include "weft/core/threads.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

constexpr real kInfinity = std::numeric_limits<real>::infinity();

/// The fault of this test, gone at its end.
class Faulty {
 public:
  Faulty(Fault::Kind kind, std::function<bool(std::uint64_t, const Var&)> when,
         real value = std::numeric_limits<real>::quiet_NaN(), Index row = 0) {
    fault() = {kind, std::move(when), value, row};
  }
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;
  ~Faulty() { fault() = {}; }
};

auto at(std::uint64_t step) {
  return [step](std::uint64_t s, const Var&) { return s == step; };
}

Config faulty_config(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"model.feed_forward=faulty", "training.ema_decay=0.9", "training.keep_best=2"});
  return tiny_config(overrides);
}

Config with_policy(const std::string& policy, std::vector<std::string> overrides = {}) {
  overrides.push_back("training.on_divergence=" + policy);
  return faulty_config(overrides);
}

std::string error_of(Session& session) {
  return thrown_text<Error>([&] { session.finish(); });
}

/// Checks every number of every checkpoint of a folder, optimizer and average too, and every line of the log.
void check_all_finite(const fs::path& folder) {
  int checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++checkpoints;
    CAPTURE(entry.path().string());
    const SafetensorsFile file = SafetensorsFile::open(entry.path());
    for (const SafetensorsEntry& tensor : file.entries()) {
      CAPTURE(tensor.name);
      std::vector<real> values(static_cast<std::size_t>(tensor.elements()));
      file.read(tensor.name, values);
      CHECK(first_not_finite(values) == -1);
    }
  }
  CHECK(checkpoints > 0);
  std::istringstream lines(bytes_of(folder / "log.jsonl"));
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
}

std::vector<EventEntry> events(const fs::path& folder) { return read_run_log((folder / "log.jsonl").string()).events; }

/// The bytes of all checkpoints and the log of a run.
std::map<std::string, std::string> results(const fs::path& folder) {
  std::map<std::string, std::string> all{{"log", log_without_times(folder)}};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") all[entry.path().filename().string()] = bytes_of(entry.path());
  }
  return all;
}

/// Trains in a folder until `batches` batches have been seen, then stops it as a signal does, or until it is over.
TrainingEnd train_for(const fs::path& folder, const Config& config, int batches) {
  Session session(folder, config, faulty_layers());
  volatile int stop = 0;
  const auto when = fault().when;
  fault().when = [&](std::uint64_t step, const Var& x) {
    if (--batches == 0) stop = 1;
    return when(step, x);
  };
  const TrainingEnd end = session.trainer().run(stop);
  fault().when = when;
  return end;
}

void check_same(const fs::path& folder, const std::map<std::string, std::string>& expected) {
  const auto found = results(folder);
  for (const auto& [name, bytes] : expected) {
    CAPTURE(name);
    REQUIRE(found.count(name) == 1);
    CHECK((found.at(name) == bytes));
  }
}

/// Checks that a run that is stopped again and again ends as the one in `straight`, never stopped.
void check_resumable(const Config& config, const fs::path& straight, std::initializer_list<int> strides) {
  const auto expected = results(straight);
  for (const int stride : strides) {
    CAPTURE(stride);
    const TemporaryFolder folder;
    while (train_for(folder.path(), config, stride) != TrainingEnd::kDone) continue;
    check_same(folder.path(), expected);
    CHECK(results(folder.path()).size() == expected.size());
  }
}

}  // namespace

TEST_CASE("a detector names the first bad op, in which direction, and the place of the number") {
  AnomalyDetector detector;
  Tape tape;
  tape.set_detector(&detector);
  const auto run = [&](std::initializer_list<real> values) {
    detector.reset();
    const Var x = tape.variable(Tensor::of({2, 3}, values));
    tape.backward(sum(mul(log(add(x, x)), x)));
    return detector.found();
  };
  CHECK_FALSE(run({1, 2, 3, 4, 5, 6}));
  std::optional<Anomaly> found = run({1, 2, 3, 4, -5, 6});
  REQUIRE(found);
  CHECK(found->op == "log");
  CHECK_FALSE(found->backward);
  CHECK(found->number == 2);
  CHECK(element_index(found->shape, found->element) == "[1, 1]");
  CHECK(std::isnan(found->value));
  CHECK(found->leaf == nullptr);

  // The square root of 0 is fine; its slope is not.
  detector.reset();
  const Var x = tape.variable(Tensor::of({2, 2}, {4, 0, 1, 9}));
  tape.backward(sum(sqrt(add(x, x))));
  found = detector.found();
  REQUIRE(found);
  CHECK(found->op == "sqrt");
  CHECK(found->backward);
  CHECK(found->number == 2);
  CHECK(element_index(found->shape, found->element) == "[0, 1]");
  CHECK(found->value == static_cast<double>(kInfinity));

  Leaf leaf{Tensor::of({2}, {1, -kInfinity}), Tensor({2}), false};
  detector.reset();
  tape.watch(leaf);
  found = detector.found();
  REQUIRE(found);
  CHECK(found->op.empty());
  CHECK(found->leaf == &leaf);
  CHECK(found->element == 1);

  tape.set_detector(nullptr);
  detector.reset();
  run({1, 2, 3, 4, -5, 6});
  CHECK_FALSE(detector.found());
}

TEST_CASE("the first number that is not finite is found wherever it stands") {
  for (const std::size_t size : {1u, 7u, 4096u, 4097u, 10000u}) {
    std::vector<real> values(size, std::numeric_limits<real>::max());
    values[0] = std::numeric_limits<real>::denorm_min();
    CHECK(first_not_finite(values) == -1);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<real> bad = values;
      bad[place] = place % 2 == 0 ? -kInfinity : std::nan("");
      bad.back() = kInfinity;
      CHECK(first_not_finite(bad) == static_cast<Index>(place));
    }
  }
}

TEST_CASE("a run stops at a bad number and names step, op, element, parameter and sentence") {
  struct Case {
    Fault::Kind kind;
    std::string headline, cause;
  };
  for (const Case& c : {Case{Fault::Kind::kResult, "the loss is nan",
                             "nan at [4, 2] of the result [R, 16] of op faulty (forward, number N), near parameter "
                             "encoder.layers.0.feed_forward.shift"},
                        {Fault::Kind::kGradient, "the gradient's norm is nan",
                         "nan at [4, 3] of an argument [R, 16] in the gradient, from op faulty (backward, number N, "
                         "result [R, 16]), near parameter encoder.layers.0.feed_forward.shift"},
                        {Fault::Kind::kParameterGradient, "the gradient's norm is nan",
                         "nan at [5] of parameter encoder.layers.0.feed_forward.shift [16] in the gradient, from op "
                         "faulty (backward, number N, result [R, 16])"}}) {
    for (const std::string detect : {"training.detect_anomaly=false", "training.detect_anomaly=true"}) {
      for (const std::string accumulate : {"training.accumulate=1", "training.accumulate=3"}) {
        CAPTURE(c.cause);
        CAPTURE(detect);
        CAPTURE(accumulate);
        const bool one = accumulate.ends_with('1');
        Index rows = 0;
        // Batch 10 of the run: of update 11, or of update 4 its second.
        const Faulty faulty(
            c.kind,
            [&](std::uint64_t step, const Var& x) {
              if (step == 10) rows = x.rows();
              return step == 10;
            },
            std::nan(""), 4);
        const TemporaryFolder folder;
        Session session(folder.path(), faulty_config({detect, accumulate, "training.save_every=2"}), faulty_layers());
        const std::string text = error_of(session);
        CAPTURE(text);
        CHECK(text.starts_with((one ? "step 11: " : "step 4: ") + c.headline + "\n"));
        // Numbers of operations are those of a Transformer and may change; that there is one may not.
        std::string cause = c.cause;
        const std::string shape = std::to_string(rows);
        for (std::size_t r; (r = cause.find("[R")) != cause.npos;) cause.replace(r + 1, 1, shape);
        const std::size_t number = cause.find("number N");
        CHECK(contains(text, "first bad number: " + cause.substr(0, number)));
        CHECK(contains(text, cause.substr(number + 8)));
        CHECK(contains(text, "\n  batch of "));
        CHECK(contains(text, "of the training text"));
        if (c.kind != Fault::Kind::kParameterGradient) CHECK(contains(text, "; the number is in pair "));
        CHECK(contains(text, "Lower optimizer.learning_rate (0.01)"));
        check_all_finite(folder.path());
        const Checkpoint last = load_checkpoint(folder / "last.safetensors", faulty_layers());
        CHECK(last.state.step == (one ? 10 : 2));
        REQUIRE(events(folder.path()).size() == 1);
        CHECK(events(folder.path())[0].event == "stopped");
        CHECK(events(folder.path())[0].text == text);
        CHECK(events(folder.path())[0].step == (one ? 11 : 4));
      }
    }
  }
}

TEST_CASE("the sentence that is named is the one whose row went bad") {
  Index row = 0;
  std::vector<std::string> named;
  const ParallelText text = letters(12, 3, 2, 6);
  for (row = 0; row < 40; row += 13) {
    const Faulty faulty(Fault::Kind::kResult, at(0), std::nan(""), row);
    const TemporaryFolder folder;
    // One batch of all pairs in the order of the batch; rows of a source are its letters and an end.
    const Config config = faulty_config({"training.batch_tokens=1000"});
    const auto model = tiny_model(config, faulty_layers());
    TrainingData data = tiny_data(*model, text, text);
    const auto batch = BatchPlan(data.train, 1000, 1).epoch(0).at(0);
    Index begin = 0, expected = -1;
    for (const Index sentence : batch) {
      const Index rows = make_batch(data.train, std::vector<Index>{sentence}).source_rows.rows();
      if (row >= begin && row < begin + rows) expected = sentence;
      begin += rows;
    }
    REQUIRE(expected >= 0);
    data.places = [](std::span<const Index> pairs) {
      std::vector<std::string> places;
      for (const Index pair : pairs) places.push_back("letters.txt:" + std::to_string(pair + 1));
      return places;
    };
    Progress progress(stdout, true);
    Trainer trainer(*model, {}, std::move(data), folder.path(), progress);
    const std::string error = thrown_text<Error>([&] { trainer.run(kNoStop); });
    CAPTURE(error);
    CHECK(contains(error, "batch of 12 pairs: letters.txt:" + std::to_string(expected + 1) + ", letters.txt:"));
    CHECK(contains(error, " and 9 more; the number is in letters.txt:" + std::to_string(expected + 1) + "\n"));
  }
}

TEST_CASE("advice names what this configuration can change") {
  CHECK(contains(divergence_advice(tiny_config({"optimizer.clip_norm=0.5"})), "lower optimizer.clip_norm (0.5)"));
  CHECK(
      contains(divergence_advice(tiny_config({"optimizer.clip_norm=0"})), "limit gradients with optimizer.clip_norm"));
  CHECK(contains(divergence_advice(tiny_config()), "schedule.warmup_steps (10)"));
}

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
    CAPTURE(saved);
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

TEST_CASE("with detect_anomaly a bad number that never reaches the loss counts, and nothing else changes") {
  const TemporaryFolder plain, detecting;
  Session(plain.path(), faulty_config(), faulty_layers()).finish();
  Session(detecting.path(), faulty_config({"training.detect_anomaly=true"}), faulty_layers()).finish();
  CHECK(log_without_times(plain.path()) == log_without_times(detecting.path()));

  const Faulty faulty(Fault::Kind::kUnused, at(3), -kInfinity);
  const TemporaryFolder unnoticed, noticed;
  Session quiet(unnoticed.path(), faulty_config(), faulty_layers());
  CHECK(quiet.finish() == TrainingEnd::kDone);
  Session session(noticed.path(), faulty_config({"training.detect_anomaly=true"}), faulty_layers());
  const std::string text = error_of(session);
  CHECK(text.starts_with("step 4: a number is not finite"));
  CHECK(contains(text, "-inf at [0, 2] of the result"));
}

TEST_CASE("a parameter, an optimizer's state and an average that are not finite reach no checkpoint") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config());
  Tensor values = model->parameters().values();
  const auto optimizer = make_optimizer({}, values.size());
  std::vector<real> average(static_cast<std::size_t>(values.size()), 1);
  const auto save = [&] { save_checkpoint(folder / "a", *model, TrainingState{}, optimizer.get(), average); };
  save();
  const std::string good = bytes_of(folder / "a");
  const auto refused = [&](real& number, const char* name) {
    for (const real bad : {kInfinity, -kInfinity, std::numeric_limits<real>::quiet_NaN()}) {
      const real before = std::exchange(number, bad);
      CHECK_THROWS_SAYING(save(), std::string(name) + " holds a number that is not finite", Error);
      number = before;
      CHECK(bytes_of(folder / "a") == good);
    }
  };
  refused(values.values().back(), model->parameters().entries().back().name.c_str());
  refused(average[3], "average.values");
  refused(optimizer->state()[1].second[2], "optimizer.second_moment");
  save();
}

TEST_CASE("an optimizer's state that overflows is no thing to go on with, though loss and gradients are finite") {
  if (sizeof(real) == sizeof(double)) return;
  // The square of a gradient of 1e25 is over what a float holds.
  const Faulty faulty(Fault::Kind::kParameterGradient, at(9), static_cast<real>(1e25));
  for (const std::string policy : {"stop", "skip"}) {
    const TemporaryFolder folder;
    Session session(folder.path(), with_policy(policy, {"optimizer.clip_norm=0"}), faulty_layers());
    const std::string text = error_of(session);
    CHECK(text.starts_with("step 16: the optimizer's second_moment has a number that is inf\n"));
    CHECK(contains(text, "[5] of parameter encoder.layers.0.feed_forward.shift [16]"));
    check_all_finite(folder.path());
    CHECK(load_checkpoint(folder / "last.safetensors", faulty_layers()).state.step == 8);
    CHECK(load_checkpoint(folder / "best.safetensors", faulty_layers()).state.step == 8);
  }
  const TemporaryFolder folder;
  Session session(folder.path(), with_policy("rollback", {"optimizer.clip_norm=0"}), faulty_layers());
  CHECK(contains(error_of(session), "went back 5 times"));
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

TEST_CASE("parameters that an update made infinite are named, and leaving out the next update does not help") {
  const TemporaryFolder folder;
  Session session(folder.path(), with_policy("skip"), faulty_layers());
  session.one_update();
  const auto& all = session.model().parameters().entries();
  const auto& entry = *std::find_if(all.begin(), all.end(), [](const ParameterEntry& e) {
    return e.name == "encoder.layers.0.feed_forward.inner.weight";
  });
  session.model().parameters().value(entry).values()[entry.shape.cols() + 1] = kInfinity;
  const std::string text = error_of(session);
  CAPTURE(text);
  CHECK(text.starts_with("step 2: "));
  CHECK(contains(text, "inf at [1, 1] of parameter " + entry.name));
  CHECK(contains(text, "before this update began"));
  CHECK(contains(text, "without this update it would be no better"));
}

TEST_CASE("a bad number in a parameter that no loss depends on, or in the average alone, is seen before it is saved") {
  for (const bool in_average : {false, true}) {
    CAPTURE(in_average);
    ParameterSet* parameters = nullptr;
    // The embedding of a token that never comes is no number after update 4, for good or until update 6.
    const Faulty faulty(Fault::Kind::kResult, [&](std::uint64_t step, const Var&) {
      real& unused = parameters->value(parameters->entries().front()).data()[kUnknown * 16 + 1];
      if (step == 3) unused = kInfinity;
      if (step == 5 && in_average) unused = 0;
      return false;
    });
    const TemporaryFolder folder;
    Session session(folder.path(), faulty_config({"optimizer.name=sgd"}), faulty_layers());
    parameters = &session.model().parameters();
    REQUIRE(parameters->entries().front().name == "source_embedding.weight");
    const std::string text = error_of(session);
    CAPTURE(text);
    CHECK(text.starts_with(in_average ? "step 8: the moving average has a number that is nan\n"
                                      : "step 8: a parameter has a number that is nan\n"));
    CHECK(contains(text, "first bad number: [0, 1] of parameter source_embedding.weight"));
    CHECK_FALSE(fs::exists(folder / "last.safetensors"));
    CHECK_FALSE(fs::exists(folder / "best.safetensors"));
  }
}

TEST_CASE("a validation loss that is not finite stops the run and names the op; leaving out an update does not help") {
  const Faulty faulty(Fault::Kind::kValidation, [](std::uint64_t, const Var&) { return true; });
  for (const std::string policy : {"stop", "skip"}) {
    const TemporaryFolder folder;
    Session session(folder.path(), with_policy(policy, {"training.save_every=5"}), faulty_layers());
    const std::string text = error_of(session);
    CAPTURE(text);
    CHECK(text.starts_with("step 8: the validation loss is nan\n  first bad number: nan at [0, 2] of the result ["));
    CHECK(contains(text, "op faulty (forward"));
    CHECK_FALSE(contains(text, "batch of"));
    check_all_finite(folder.path());
    CHECK_FALSE(fs::exists(folder / "best.safetensors"));
    CHECK(load_checkpoint(folder / "last.safetensors", faulty_layers()).state.step == 5);
  }
}

TEST_CASE("a loss whose perplexity overflows does not end a run; its log stays valid") {
  const TemporaryFolder folder;
  Session(folder.path(), tiny_config({"training.save_every=1"})).one_update();
  Checkpoint checkpoint = load_checkpoint(folder / "last.safetensors", standard_layers());
  for (const ParameterEntry& entry : checkpoint.model->parameters().entries()) {
    if (entry.name != "output.bias") continue;
    // Sure of a token that is never right.
    checkpoint.model->parameters().value(entry).values()[static_cast<std::size_t>(kBegin)] = 5000;
  }
  save_checkpoint(folder / "last.safetensors", *checkpoint.model, checkpoint.state,
                  make_optimizer({}, checkpoint.model->parameters().values().size()).get());
  Session session(folder.path(), tiny_config());
  CHECK(session.finish() == TrainingEnd::kDone);
  check_all_finite(folder.path());
  const auto log = read_run_log((folder / "log.jsonl").string());
  REQUIRE(log.validations.size() == 3);
  CHECK(log.validations[0].loss > 710);
  CHECK_FALSE(std::isfinite(log.validations[0].perplexity));
  CHECK(contains(bytes_of(folder / "log.jsonl"), "\"perplexity\":null"));
}

TEST_CASE("an empty source beside a long one gives a finite loss and finite gradients") {
  for (const TransformerOptions& options : {small_options(), pre_norm(small_options())}) {
    ParameterSet parameters(4);
    const Transformer model(parameters, options, standard_layers());
    perturb(parameters);
    const SmallBatch batch(options, {0, 12, 0}, {3, 9, 1});
    AnomalyDetector detector;
    Tape tape;
    tape.set_detector(&detector);
    const Context context{&tape, true, {3, 1}, nullptr, nullptr};
    const Var loss = model.loss(context, batch.batch(), {0, 1, nullptr});
    CHECK(std::isfinite(loss.value().item()));
    CHECK(loss.value().item() > 1);
    tape.backward(loss);
    CHECK_FALSE(detector.found());
    parameters.complete_gradients();
    const Tensor gradients = parameters.gradients();
    CHECK(first_not_finite(gradients.values()) == -1);
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

TEST_CASE("places of training pairs are the lines of the user's files, whatever the files are and what is held out") {
  const TemporaryFolder folder;
  // Every sentence says where it stands.
  const auto sentences = [](const std::string& name, int count, const std::string& end) {
    std::string text;
    for (int i = 1; i <= count; ++i) text += name + " " + std::to_string(i) + end + "\n";
    return text;
  };
  folder.write("one.a.gz", gzipped(sentences("one", 40, "")));
  folder.write("one.b.gz", gzipped(sentences("eins", 20, "") + "\n\n" + sentences("ein", 18, "") + "\n"));
  folder.write("two.tsv", "\xEF\xBB\xBF" + sentences("two", 10, "\tzwei") + "too few columns\n\n" +
                              sentences("and", 5, "\tund\tmore"));
  folder.write("three.a", sentences("three", 7, ""));
  folder.write("three.b", sentences("drei", 7, ""));
  const std::string path = folder.path().string();
  for (const std::string held : {"0", "6"}) {
    CAPTURE(held);
    const Config config = parse_config(R"({"data": {"train": [{"source": ")" + path + R"(/one.a.gz", "target": ")" +
                                           path + R"(/one.b.gz"},
            {"tsv": ")" + path + R"(/two.tsv"},
            {"source": ")" + path + R"(/three.a", "target": ")" +
                                           path + R"(/three.b"}], "hold_out_valid": )" + held +
                                           R"(, "hold_out_test": )" + held + "}}",
                                       "places");
    const RunText text(config.data);
    std::vector<std::string> source;
    text.read_train(
        [&](const ParallelText& block) { source.insert(source.end(), block.source.begin(), block.source.end()); });
    REQUIRE(source.size() == (held == "0" ? 62 : 50));
    std::vector<Index> pairs;
    for (std::size_t i = 0; i < source.size(); ++i) pairs.push_back(static_cast<Index>(source.size() - 1 - i));
    const std::vector<std::string> places = text.train_places(pairs, "");
    REQUIRE(places.size() == pairs.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::string& line = source[static_cast<std::size_t>(pairs[i])];
      const int number = std::stoi(line.substr(line.find(' ') + 1));
      const std::string expected = line.starts_with("one")   ? "/one.a.gz:" + std::to_string(number)
                                   : line.starts_with("two") ? "/two.tsv:" + std::to_string(number)
                                   : line.starts_with("and") ? "/two.tsv:" + std::to_string(number + 12)
                                                             : "/three.a:" + std::to_string(number);
      CHECK(places[i] == path + expected);
    }
    CHECK_THROWS_SAYING(text.train_places(std::vector<Index>{1000}, ""), "has shrunk", DataError);
  }
  const RunText task(parse_config(R"({"data": {"task": "copy", "pairs": 20}})", "task").data);
  CHECK(task.train_places(std::vector<Index>{4}, "run/data") == std::vector<std::string>{"run/data/train.src:5"});
}

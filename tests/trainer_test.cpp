#include "weft/train/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "session.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/train/kept_checkpoints.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

std::string error_of(Session& session) {
  try {
    session.finish();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool all_finite(const fs::path& checkpoint) {
  const Checkpoint loaded = load_checkpoint(checkpoint, standard_layers());
  const Tensor values = loaded.model->parameters().values();
  return std::all_of(values.values().begin(), values.values().end(), [](real v) { return std::isfinite(v); });
}

}  // namespace

TEST_CASE("checkpoints and log are the same bytes for one, two and three threads") {
  const Config config = tiny_config({"training.steps=50", "training.batch_tokens=400", "model.d_model=32",
                                     "model.d_feed_forward=64", "training.accumulate=2"});
  std::string last, best, log;
  for (const int count : {1, 2, 3}) {
    const TemporaryFolder folder;
    set_threads(count);
    Session session(folder.path(), config, letters(200, 5), letters(40, 6));
    CHECK(session.finish() == TrainingEnd::kDone);
    if (count == 1) {
      last = bytes_of(folder / "last.safetensors");
      best = bytes_of(folder / "best.safetensors");
      log = log_without_times(folder.path());
      REQUIRE_FALSE(last.empty());
      REQUIRE_FALSE(best.empty());
    }
    CHECK(bytes_of(folder / "last.safetensors") == last);
    CHECK(bytes_of(folder / "best.safetensors") == best);
    CHECK(log_without_times(folder.path()) == log);
  }
  set_threads(1);
}

TEST_CASE("a run stopped anywhere and taken up again ends with the same bytes as one never stopped") {
  for (const char* accumulate : {"training.accumulate=1", "training.accumulate=2"}) {
    const Config config = tiny_config({accumulate, "training.steps=24", "training.best_metric=token_accuracy"});
    const TemporaryFolder straight;
    {
      Session session(straight.path(), config);
      CHECK(session.trainer().batches_per_epoch() > 3);  // so that stops fall into the middle of epochs
      CHECK(session.finish() == TrainingEnd::kDone);
      CHECK(session.trainer().state().epoch >= 3);
    }
    const std::string last = bytes_of(straight / "last.safetensors"), best = bytes_of(straight / "best.safetensors");
    // Stops in the warm-up, in epochs, at and beside validations (8, 16) and log lines (5, 10, 15, 20), one
    // before the end.
    for (const std::vector<int>& stops : {std::vector<int>{1}, {2, 5}, {7}, {8}, {3, 4, 6, 9}, {15, 16, 17}, {23}}) {
      CAPTURE(accumulate);
      CAPTURE(stops.back());
      const TemporaryFolder folder;
      int done = 0;
      for (const int stop : stops) {
        Session session(folder.path(), config);
        for (; done < stop; ++done) CHECK(session.one_update() == TrainingEnd::kStopped);
        CHECK(session.trainer().state().step == stop);
      }
      Session session(folder.path(), config);
      CHECK(session.finish() == TrainingEnd::kDone);
      CHECK(bytes_of(folder / "last.safetensors") == last);
      CHECK(bytes_of(folder / "best.safetensors") == best);
      CHECK(log_without_times(folder.path()) == log_without_times(straight.path()));
    }
  }
}

TEST_CASE("a run killed after more updates than were saved makes them again") {
  const Config config = tiny_config({"training.save_every=3"});
  const TemporaryFolder straight, killed;
  Session(straight.path(), config).finish();
  {
    Session session(killed.path(), config);
    for (int i = 0; i < 10; ++i) session.one_update();
  }
  const std::string saved = bytes_of(killed / "last.safetensors");
  {
    Session session(killed.path(), config);
    for (int i = 0; i < 7; ++i) session.one_update();
  }
  put(killed / "last.safetensors",
      saved);  // as if the last seven updates had not been saved; the log has them
  Session(killed.path(), config).finish();
  CHECK(bytes_of(killed / "last.safetensors") == bytes_of(straight / "last.safetensors"));
  CHECK(bytes_of(killed / "best.safetensors") == bytes_of(straight / "best.safetensors"));
  CHECK(log_without_times(killed.path()) == log_without_times(straight.path()));
}

TEST_CASE("a run that goes on makes the text of the epoch it stands in, and of none before") {
  const TemporaryFolder folder;
  const Config config = tiny_config({"training.steps=30"});
  std::vector<Index> made;
  const auto train = [&](int stop, int updates) {
    Progress progress(stdout, true);
    Checkpoint checkpoint;
    if (fs::exists(folder / "last.safetensors")) {
      checkpoint = load_checkpoint(folder / "last.safetensors", standard_layers());
    } else {
      checkpoint.model = tiny_model(config);
    }
    TrainingData data = tiny_data(*checkpoint.model, letters(60, 5), letters(10, 6));
    data.train_in_epoch = [&, text = data.train](Index epoch) {
      made.push_back(epoch);
      return text;
    };
    Trainer trainer(*checkpoint.model, checkpoint.state, std::move(data), folder.path(), progress);
    for (int i = 0; i < updates; ++i) trainer.run(stop);
    return trainer.state().epoch;
  };
  const Index epoch = train(kStopAtOnce, 16);
  REQUIRE(epoch >= 2);
  made.clear();
  CHECK(train(kStopAtOnce, 1) == epoch);
  CHECK(made == std::vector<Index>{epoch});
}

TEST_CASE("elapsed time goes on where the log left it") {
  const TemporaryFolder folder;
  {
    Session session(folder.path(), tiny_config({"training.log_every=1"}));
    session.one_update();
    session.one_update();
  }
  Session session(folder.path(), tiny_config({"training.log_every=1"}));
  const double before = read_run_log((folder / "log.jsonl").string()).steps.at(1).elapsed_seconds;
  CHECK(before > 0);
  CHECK(session.trainer().elapsed_seconds() >= before);
  session.one_update();
  CHECK(read_run_log((folder / "log.jsonl").string()).steps.at(2).elapsed_seconds > before);
}

TEST_CASE("a time budget counts the start of each session, and those before") {
  const TemporaryFolder folder;
  const Config config = tiny_config({"training.log_every=1", "training.steps=2000"});
  {
    Session session(folder.path(), config);
    session.trainer().end_within(1e6, 0, 1000);
    CHECK(session.one_update() == TrainingEnd::kStopped);
  }
  CHECK(read_run_log((folder / "log.jsonl").string()).steps.at(0).elapsed_seconds >= 1000);
  Session session(folder.path(), config);
  session.trainer().end_within(1500, 0, 600);  // 1000 then, 600 now
  CHECK(session.finish() == TrainingEnd::kOutOfTime);
  CHECK(session.trainer().state().step == 2);
  CHECK(read_run_log((folder / "log.jsonl").string()).steps.at(1).elapsed_seconds >= 1600);
}

TEST_CASE("a last checkpoint that cannot be looked at is named") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config({"training.on_divergence=rollback"}));
  Progress progress(stdout, true);
  Trainer trainer(*model, {}, tiny_data(*model, letters(60, 5), letters(10, 6)), folder.path(), progress);
  fs::create_symlink("last.safetensors", folder / "last.safetensors");  // in circles
  CHECK_THROWS_SAYING(trainer.run(kNoStop), "last.safetensors: cannot be looked at: Too many levels", Error);
}

TEST_CASE("a copy of a checkpoint has its bytes, and takes the place of the file that was there") {
  const TemporaryFolder folder;
  for (const std::size_t bytes : {0, 1, 1 << 20, (1 << 20) + 1, 5 << 19}) {
    std::string text(bytes, ' ');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 % 251);
    copy_checkpoint(folder.write("from", text), folder / "to");
    CHECK((bytes_of(folder / "to") == text));
  }
  CHECK_THROWS_SAYING(copy_checkpoint(folder / "none", folder / "to"), "none: cannot be read", DataError);
  CHECK(bytes_of(folder / "to").size() == 5 << 19);
}

TEST_CASE("accumulating k batches equals one batch of k") {
  // Pairs of equal length: an epoch is 24 * 8 tokens, whatever is in a batch.
  const ParallelText train = letters(24, 3, 3, 3), valid = letters(4, 4);
  struct Update {
    std::vector<real> parameters;
    double loss, norm;
  };
  const auto updated = [&](Index accumulate) -> Update {
    const TemporaryFolder folder;
    Session session(folder.path(),
                    tiny_config({"training.accumulate=" + std::to_string(accumulate),
                                 "training.batch_tokens=" + std::to_string(24 * 8 / accumulate), "optimizer.name=sgd",
                                 "optimizer.learning_rate=0.5", "schedule.name=constant", "schedule.warmup_steps=0",
                                 "model.dropout=0", "model.attention_dropout=0", "model.activation_dropout=0",
                                 "training.log_every=1"}),
                    train, valid);
    CHECK(session.trainer().batches_per_epoch() == accumulate);
    session.one_update();
    const StepEntry entry = read_run_log((folder / "log.jsonl").string()).steps.at(0);
    return {session.parameters(), entry.loss, entry.grad_norm};
  };
  const Update one = updated(1);
  CHECK(one.norm > 1e-2);  // the update was not nothing
  for (const Index k : {2, 4}) {
    const Update several = updated(k);
    CHECK(several.loss == doctest::Approx(one.loss).epsilon(1e-5));
    CHECK(several.norm == doctest::Approx(one.norm).epsilon(1e-4));
    real largest = 0;
    for (std::size_t i = 0; i < one.parameters.size(); ++i) {
      largest = std::max(largest, std::abs(one.parameters[i] - several.parameters[i]));
    }
    CHECK(largest < 1e-5);
  }
}

TEST_CASE("fewer pairs than a batch make one batch an epoch, every epoch") {
  const TemporaryFolder folder;
  Session session(folder.path(), tiny_config({"training.batch_tokens=100000", "training.log_every=1"}), letters(5, 1),
                  letters(2, 2));
  CHECK(session.trainer().batches_per_epoch() == 1);
  CHECK(session.finish() == TrainingEnd::kDone);
  const auto steps = read_run_log((folder / "log.jsonl").string()).steps;
  REQUIRE(steps.size() == 20);
  for (const StepEntry& entry : steps) CHECK(entry.epoch == entry.step);
}

TEST_CASE("the logged learning rate is that of the schedule, also after a stop in the warm-up") {
  const TemporaryFolder folder;
  const Config config = tiny_config({"training.log_every=1", "schedule.warmup_steps=4"});
  Session(folder.path(), config).one_update();
  {
    Session session(folder.path(), config);
    session.one_update();
  }
  Session(folder.path(), config).finish();
  const ScheduleOptions schedule{"inverse_sqrt", 4, 20, 0.01, 0, 16};
  const auto steps = read_run_log((folder / "log.jsonl").string()).steps;
  REQUIRE(steps.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(steps[i].step == static_cast<Index>(i) + 1);
    CHECK(steps[i].learning_rate == learning_rate(schedule, steps[i].step));
  }
}

TEST_CASE("numbers that are not finite stop the run, name the step, and never reach a checkpoint") {
  // sgd multiplies its rate into the weights, so they overflow in an update or two; with save_every 1 each
  // would be saved.
  for (const std::string rate :
       {"optimizer.learning_rate=1e9", "optimizer.learning_rate=1e30", "optimizer.learning_rate=1e300"}) {
    for (const char* optimizer : {"optimizer.name=sgd", "optimizer.name=adam"}) {
      for (const char* validate : {"training.validate_every=1", "training.validate_every=1000"}) {
        CAPTURE(rate);
        CAPTURE(optimizer);
        CAPTURE(validate);
        const TemporaryFolder folder;
        const std::vector<std::string> good{optimizer, "training.save_every=1"};
        {
          Session session(folder.path(), tiny_config(good));
          for (int i = 0; i < 9; ++i) session.one_update();
        }
        REQUIRE(all_finite(folder / "last.safetensors"));
        std::vector<std::string> bad = good;
        bad.insert(bad.end(), {rate, validate, "optimizer.clip_norm=0", "schedule.name=constant"});
        Session session(folder.path(), tiny_config(bad));
        const std::string text = error_of(session);
        if (text != "no error") {  // layer norms can hide a rate of 1e9
          CHECK(text.starts_with("step "));
          CHECK(contains(text, " is "));
          CHECK(contains(text, "Lower optimizer.learning_rate"));
        } else {
          CHECK(rate == "optimizer.learning_rate=1e9");
        }
        CHECK(all_finite(folder / "last.safetensors"));
        CHECK(all_finite(folder / "best.safetensors"));
        for (const auto& entry : read_run_log((folder / "log.jsonl").string()).validations)
          CHECK(std::isfinite(entry.loss));
      }
    }
  }
}

TEST_CASE("a state that does not fit the text is refused") {
  const TemporaryFolder folder;
  Session(folder.path(), tiny_config()).one_update();
  Checkpoint checkpoint = load_checkpoint(folder / "last.safetensors", standard_layers());
  checkpoint.state.next_batch = 1000;
  save_checkpoint(folder / "last.safetensors", *checkpoint.model, checkpoint.state, nullptr);
  const std::string log = bytes_of(folder / "log.jsonl") + R"({"step":9,"event":"skipped","count":1,"text":""})"
                                                           "\n";
  folder.write("log.jsonl", log);
  CHECK_THROWS_SAYING(Session(folder.path(), tiny_config()), "stands at batch 1000", CheckpointError);
  CHECK(bytes_of(folder / "log.jsonl") == log);  // what is refused costs no line of a later step
}

TEST_CASE("a tiny model learns to copy") {
  const TemporaryFolder folder;
  Session session(
      folder.path(),
      tiny_config({"training.steps=150", "training.validate_every=150", "training.log_every=10",
                   "training.batch_tokens=300", "model.d_model=32", "model.d_feed_forward=64", "model.dropout=0",
                   "model.attention_dropout=0", "model.activation_dropout=0", "training.label_smoothing=0"}),
      letters(300, 5), letters(20, 6));
  session.finish();
  const RunLogEntries entries = read_run_log((folder / "log.jsonl").string());
  CHECK(entries.steps.front().loss > 1.5);
  CHECK(entries.steps.back().loss < 0.5 * entries.steps.front().loss);
  REQUIRE(entries.validations.size() == 1);
  CHECK(entries.validations[0].token_accuracy > 0.7);
}

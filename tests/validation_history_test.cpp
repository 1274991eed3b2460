// What validations decide: the best, patience, plateaus, and which checkpoints of them a run keeps.
#include "weft/train/validation_history.h"

#include <doctest/doctest.h>

#include <limits>

#include "session.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/train/evaluate.h"
#include "weft/train/kept_checkpoints.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Validations at steps 10, 20, … with these losses; BLEU is their negative.
std::vector<ValidationEntry> with_losses(const std::vector<double>& losses) {
  std::vector<ValidationEntry> validations;
  for (const double loss : losses) {
    validations.push_back({10 * static_cast<Index>(validations.size() + 1), loss, 0, 0, 0, -loss});
  }
  return validations;
}

Index since(const std::vector<double>& losses) { return validations_without_better(with_losses(losses), "loss"); }

using Steps = std::vector<Index>;

/// The steps of the checkpoints of single validations in a folder.
std::set<std::string> step_files(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step")) names.insert(name);
  }
  return names;
}

/// A configuration whose weights do not move, so that no validation is better than the first.
Config standing_still(std::vector<std::string> more) {
  more.insert(more.end(), {"optimizer.name=sgd", "optimizer.learning_rate=1e-30", "training.validate_every=2",
                           "training.log_every=1", "schedule.warmup_steps=1"});
  return tiny_config(more);
}

}  // namespace

TEST_CASE("each metric names its result, and is better in its direction") {
  const ValidationEntry entry{1, 1.5, 0, 0.25, 0.125, 33};
  CHECK(score_of(entry, "loss") == 1.5);
  CHECK(score_of(entry, "token_accuracy") == 0.25);
  CHECK(score_of(entry, "exact_match") == 0.125);
  CHECK(score_of(entry, "bleu") == 33);
  CHECK(is_better("loss", 1, 2));
  CHECK_FALSE(is_better("loss", 2, 1));
  CHECK_FALSE(is_better("loss", 1, 1));
  for (const std::string metric : {"bleu", "exact_match", "token_accuracy"}) {
    CHECK(is_better(metric, 2, 1));
    CHECK_FALSE(is_better(metric, 1, 2));
    CHECK_FALSE(is_better(metric, 1, 1));
    CHECK(is_better(metric, 0, kNone));
    CHECK_FALSE(is_better(metric, kNone, 0));
  }
  CHECK_FALSE(is_better("loss", kNone, kNone));
}

TEST_CASE("the best validations come best first, of equal ones the last first") {
  const auto validations = with_losses({3, 1, 2, 1, 4});
  CHECK(best_steps(validations, "loss", 1) == Steps{40});
  CHECK(best_steps(validations, "loss", 3) == Steps{40, 20, 30});
  CHECK(best_steps(validations, "bleu", 2) == Steps{40, 20});
  CHECK(best_steps(validations, "loss", 9) == Steps{40, 20, 30, 10, 50});
  CHECK(best_steps({}, "loss", 2).empty());
}

TEST_CASE("an equal result is not a better one; the count begins anew with each better one") {
  CHECK(since({}) == 0);
  CHECK(since({5}) == 0);
  CHECK(since({5, 4, 3}) == 0);
  CHECK(since({5, 5, 5}) == 2);
  CHECK(since({5, 6, 4, 4, 7}) == 2);
  CHECK(since({5, 6, 7, 4}) == 0);
}

TEST_CASE("a plateau is counted when it has lasted, and the next begins there") {
  const auto count = [](const std::vector<double>& losses, Index patience) {
    return plateaus(with_losses(losses), "loss", patience);
  };
  CHECK(count({}, 1) == 0);
  CHECK(count({5, 5}, 1) == 1);
  CHECK(count({5, 5, 5, 5, 5}, 2) == 2);
  CHECK(count({5, 5, 4, 4, 4, 3}, 2) == 1);
  CHECK(count({5, 6, 5, 4.5, 6}, 2) == 1);
  CHECK(count({5, 6, 5.5, 5.4, 5.3}, 2) == 2);  // better than the last, but not than the best
}

TEST_CASE("kept are the best k, if more than the one that there is anyway, and the last n") {
  const auto validations = with_losses({3, 1, 2, 4, 5});
  TrainingConfig training;
  CHECK(kept_steps(validations, training).empty());
  training.keep_best = 2;
  CHECK(kept_steps(validations, training) == std::set<Index>{20, 30});
  training.keep_last = 2;
  CHECK(kept_steps(validations, training) == std::set<Index>{20, 30, 40, 50});
  training.keep_best = 1;
  CHECK(kept_steps(validations, training) == std::set<Index>{40, 50});
  training.keep_last = 100;
  CHECK(kept_steps(validations, training).size() == 5);
}

TEST_CASE("only step checkpoints that are not kept are removed, and what a killed process left of any") {
  const TemporaryFolder folder;
  for (const char* name :
       {"step-10.safetensors", "step-20.safetensors", "step-20.safetensors.77.tmp", "step-30.safetensors.77.tmp",
        "step-030.safetensors", "step-.safetensors", "step-40.txt", "step-x.safetensors", "step--1.safetensors"}) {
    folder.write(name, "x");
  }
  remove_step_checkpoints(folder.path(), {20});
  CHECK(step_files(folder.path()) == std::set<std::string>{"step-20.safetensors", "step-030.safetensors",
                                                           "step-.safetensors", "step-40.txt", "step-x.safetensors",
                                                           "step--1.safetensors"});
  CHECK(step_checkpoint("a", 20) == fs::path("a/step-20.safetensors"));
  remove_step_checkpoints(folder / "nowhere", {});
}

TEST_CASE("patience ends a run, wherever it was stopped before, and the end is known without the run") {
  for (const char* metric : {"loss", "exact_match"}) {
    const Config config = standing_still({"training.patience=3", std::string("training.best_metric=") + metric});
    const TemporaryFolder straight;
    Session session(straight.path(), config);
    CHECK(session.finish() == TrainingEnd::kOutOfPatience);
    CHECK(session.trainer().state().step == 8);  // validations at 2, and without a better one at 4, 6, 8
    CHECK(training_end(session.trainer().state(), config.training) == TrainingEnd::kOutOfPatience);
    CHECK(session.finish() == TrainingEnd::kOutOfPatience);  // at once
    CHECK(session.trainer().state().step == 8);
    for (const int stop : {1, 3, 6, 7}) {
      CAPTURE(stop);
      const TemporaryFolder folder;
      for (int i = 0; i < stop; ++i) CHECK(Session(folder.path(), config).one_update() == TrainingEnd::kStopped);
      CHECK(Session(folder.path(), config).finish() == TrainingEnd::kOutOfPatience);
      CHECK(bytes_of(folder / "last.safetensors") == bytes_of(straight / "last.safetensors"));
      CHECK(bytes_of(folder / "best.safetensors") == bytes_of(straight / "best.safetensors"));
    }
  }
  const TemporaryFolder folder;
  const Config enough = standing_still({"training.patience=10"});
  CHECK(Session(folder.path(), enough).finish() == TrainingEnd::kDone);
}

TEST_CASE("the rate falls after each plateau, also when the run was stopped at every update") {
  const Config config = standing_still({"schedule.name=plateau", "schedule.patience=1", "schedule.factor=0.5",
                                        "schedule.final_ratio=0.2", "training.steps=12"});
  const TemporaryFolder straight, stopped;
  Session(straight.path(), config).finish();
  for (int i = 0; i < 12; ++i) Session(stopped.path(), config).one_update();
  CHECK(bytes_of(stopped / "last.safetensors") == bytes_of(straight / "last.safetensors"));
  CHECK(log_without_times(stopped.path()) == log_without_times(straight.path()));
  const auto steps = read_run_log((straight / "log.jsonl").string()).steps;
  REQUIRE(steps.size() == 12);
  const double expected[]{1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2};
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(steps[i].learning_rate == doctest::Approx(1e-30 * expected[i]).epsilon(1e-12));
}

TEST_CASE("a run keeps the checkpoints of its best and last validations, the same after any stop") {
  const Config config = tiny_config({"training.validate_every=2", "training.keep_best=3", "training.keep_last=2",
                                     "training.best_metric=token_accuracy"});
  const TemporaryFolder straight;
  Session session(straight.path(), config);
  session.finish();
  const TrainingState& state = session.trainer().state();
  REQUIRE(state.validations.size() == 10);
  const std::set<Index> kept = kept_steps(state.validations, config.training);
  CHECK(kept.size() >= 3);
  std::set<std::string> names;
  for (const Index step : kept) names.insert(step_checkpoint("", step).string());
  CHECK(step_files(straight.path()) == names);
  for (const Index step : kept) {
    const Checkpoint checkpoint = load_checkpoint(step_checkpoint(straight.path(), step), standard_layers());
    CHECK(checkpoint.state.step == step);
    const TrainingData data = tiny_data(*checkpoint.model, letters(60, 5), letters(10, 6));
    CHECK(evaluate_loss(*checkpoint.model, data.valid, 100).loss == checkpoint.state.validations.back().loss);
  }
  CHECK(bytes_of(step_checkpoint(straight.path(), state.best_step)) == bytes_of(straight / "best.safetensors"));

  const TemporaryFolder stopped;
  for (int i = 0; i < 20; ++i) {
    Session(stopped.path(), config).one_update();
    // As if killed after a step checkpoint that last.safetensors does not know of yet.
    if (i == 6) stopped.write("step-8.safetensors", "half");
  }
  CHECK(step_files(stopped.path()) == names);
  for (const std::string& name : names) CHECK(bytes_of(stopped / name) == bytes_of(straight / name));
}

// The moving average of parameters: its numbers, and its place in a run.
#include "weft/optim/moving_average.h"

#include <doctest/doctest.h>

#include "session.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/safetensors.h"
#include "weft/core/threads.h"
#include "weft/train/evaluate.h"
#include "weft/train/kept_checkpoints.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

std::vector<real> copy(std::span<const real> values) { return {values.begin(), values.end()}; }

std::vector<real> parameters_of(const fs::path& path) {
  const Checkpoint checkpoint = load_checkpoint(path, standard_layers());
  const Tensor values = checkpoint.model->parameters().values();
  return copy(values.values());
}

std::vector<real> average_of(const fs::path& path, std::size_t size) {
  std::vector<real> values(size);
  load_average(path, values);
  return values;
}

}  // namespace

TEST_CASE(
    "the average follows its formula, from a decay that grows to the one "
    "given") {
  const std::vector<real> start{0, 10}, later{1, 20};
  MovingAverage average(0.5, start);
  CHECK(copy(average.values()) == start);
  average.update(later, 1);  // d = 2 / 11
  CHECK(average.values()[0] == doctest::Approx(9.0 / 11).epsilon(1e-6));
  CHECK(average.values()[1] == doctest::Approx(10 + 90.0 / 11).epsilon(1e-6));
  MovingAverage old(0.5, start);
  old.update(later, 1000);  // d = 0.5
  CHECK(copy(old.values()) == std::vector<real>{static_cast<real>(0.5), 15});
  for (const double decay : {0.0, 1.0, -0.5, 2.0}) CHECK_THROWS_AS(MovingAverage(decay, start), ConfigError);
  CHECK_THROWS_AS(old.update(std::vector<real>(3), 1), ShapeError);
}

TEST_CASE("one, two and three threads give the same average") {
  Random random(4);
  std::vector<real> start(100'003), later(100'003);
  for (real& value : start) value = static_cast<real>(random.uniform());
  for (real& value : later) value = static_cast<real>(random.uniform());
  std::vector<std::vector<real>> results;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    MovingAverage average(0.99, start);
    for (Index n = 1; n <= 5; ++n) average.update(later, n);
    results.push_back(copy(average.values()));
  }
  set_threads(1);
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE(
    "a run validates the average and saves it as the parameters; "
    "training does not see it") {
  const std::vector<std::string> common{"training.validate_every=4", "training.keep_last=9"};
  std::vector<std::string> with_average = common;
  with_average.push_back("training.ema_decay=0.8");
  const Config config = tiny_config(with_average);
  const TemporaryFolder folder, plain;
  std::vector<real> expected;
  {
    const auto model = tiny_model(config);
    const Tensor values = model->parameters().values();
    expected = copy(values.values());
  }
  for (Index n = 1; n <= 20; ++n) {
    Session(folder.path(), config).one_update();
    const std::vector<real> raw = parameters_of(folder / "last.safetensors");
    const auto share =
        static_cast<real>(1 - std::min(0.8, (1 + static_cast<double>(n)) / (10 + static_cast<double>(n))));
    for (std::size_t i = 0; i < raw.size(); ++i) expected[i] += share * (raw[i] - expected[i]);
    const std::vector<real> average = average_of(folder / "last.safetensors", raw.size());
    double worst = 0;
    for (std::size_t i = 0; i < raw.size(); ++i)
      worst = std::max(worst, std::abs(double{average[i]} - double{expected[i]}));
    CHECK(worst < 1e-5);
    CHECK(average != raw);
    if (n % 4 != 0) continue;
    const fs::path step = step_checkpoint(folder.path(), n);
    CHECK(parameters_of(step) == average);
    CHECK(SafetensorsFile::open(step).find("average.values") == nullptr);
    const Checkpoint checkpoint = load_checkpoint(step, standard_layers());
    const TrainingData data = tiny_data(*checkpoint.model, letters(60, 5), letters(10, 6));
    CHECK(evaluate_loss(*checkpoint.model, data.valid, 100).loss == checkpoint.state.validations.back().loss);
  }
  Session(plain.path(), tiny_config(common)).finish();
  CHECK(parameters_of(folder / "last.safetensors") == parameters_of(plain / "last.safetensors"));
  CHECK(bytes_of(folder / "best.safetensors") != bytes_of(plain / "best.safetensors"));
}

TEST_CASE(
    "a run with an average goes on exactly, and not from a checkpoint "
    "without it") {
  const Config config = tiny_config({"training.ema_decay=0.9"});
  const TemporaryFolder straight, stopped, without;
  Session(straight.path(), config).finish();
  for (const int updates : {1, 6, 2}) {
    Session session(stopped.path(), config);
    for (int i = 0; i < updates; ++i) session.one_update();
  }
  Session(stopped.path(), config).finish();
  CHECK(bytes_of(stopped / "last.safetensors") == bytes_of(straight / "last.safetensors"));
  CHECK(bytes_of(stopped / "best.safetensors") == bytes_of(straight / "best.safetensors"));
  Session(without.path(), tiny_config()).one_update();
  CHECK_THROWS_SAYING(Session(without.path(), config), "no tensor average.values", CheckpointError);
}

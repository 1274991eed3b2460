#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/core/safetensors.h"
#include "weft/core/threads.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/schedule.h"

using namespace weft;

namespace {
long allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(std::max<std::size_t>(bytes, 1));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr bool kDouble = sizeof(real) == 8;

ScheduleOptions schedule(const char* name) {
  return {.name = name, .warmup_steps = 100, .steps = 1100, .peak = 0.5, .final_ratio = 0.1, .d_model = 64};
}

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-12); }

OptimizerOptions optimizer(const char* name, double weight_decay = 0, double momentum = 0) {
  OptimizerOptions options;
  options.name = name;
  options.weight_decay = weight_decay;
  options.momentum = momentum;
  return options;
}

std::vector<real> numbers(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<real> values(count);
  for (real& value : values) value = static_cast<real>(random.uniform() - 0.5);
  return values;
}

}  // namespace

TEST_CASE("schedules have their known values") {
  CHECK(learning_rate(schedule("constant"), 1) == near(0.005));
  CHECK(learning_rate(schedule("constant"), 50) == near(0.25));
  CHECK(learning_rate(schedule("constant"), 100) == 0.5);
  CHECK(learning_rate(schedule("constant"), 100000) == 0.5);

  CHECK(learning_rate(schedule("noam"), 1) == near(0.5 / 8 / 1000));
  CHECK(learning_rate(schedule("noam"), 100) == near(0.5 / 8 / 10));  // the peak
  CHECK(learning_rate(schedule("noam"), 99) < learning_rate(schedule("noam"), 100));
  CHECK(learning_rate(schedule("noam"), 400) == near(0.5 / 8 / 20));
  // The base model of the paper: 7.0e-4 at update 4000.
  CHECK(learning_rate({.name = "noam", .warmup_steps = 4000, .peak = 1, .d_model = 512}, 4000) ==
        near(1 / std::sqrt(512.0 * 4000.0)));

  CHECK(learning_rate(schedule("inverse_sqrt"), 50) == near(0.25));
  CHECK(learning_rate(schedule("inverse_sqrt"), 100) == 0.5);
  CHECK(learning_rate(schedule("inverse_sqrt"), 400) == near(0.25));

  for (const char* name : {"cosine", "linear"}) {
    CAPTURE(name);
    CHECK(learning_rate(schedule(name), 50) == near(0.25));
    CHECK(learning_rate(schedule(name), 100) == 0.5);
    CHECK(learning_rate(schedule(name), 600) == near(0.5 * 0.55));
    CHECK(learning_rate(schedule(name), 1100) == near(0.05));
    CHECK(learning_rate(schedule(name), 5000) == near(0.05));
  }
  CHECK(learning_rate(schedule("linear"), 350) == near(0.5 * 0.775));
  CHECK(learning_rate(schedule("cosine"), 350) == near(0.5 * (0.1 + 0.45 * (1 + std::sqrt(0.5)))));
}

TEST_CASE("each plateau lowers the rate by the factor, down to the lowest, in the warm-up too") {
  ScheduleOptions options = schedule("plateau");
  options.factor = 0.4;
  CHECK(learning_rate(options, 50) == near(0.25));
  CHECK(learning_rate(options, 100) == 0.5);
  CHECK(learning_rate(options, 100000) == 0.5);
  options.plateaus = 1;
  CHECK(learning_rate(options, 50) == near(0.25 * 0.4));
  CHECK(learning_rate(options, 101) == near(0.5 * 0.4));
  options.plateaus = 2;
  CHECK(learning_rate(options, 101) == near(0.5 * 0.16));
  options.plateaus = 3;  // 0.064 is below final_ratio
  CHECK(learning_rate(options, 101) == near(0.05));
  options.final_ratio = 0;
  CHECK(learning_rate(options, 101) == near(0.5 * 0.064));
}

TEST_CASE("the rate of update n depends on n alone, and is finite without warm-up or steps") {
  for (const std::string_view name : schedule_names()) {
    CAPTURE(name);
    std::vector<double> forward;
    for (Index n = 1; n <= 1500; ++n) forward.push_back(learning_rate(schedule(name.data()), n));
    for (Index n = 1500; n >= 1; --n) {
      if (learning_rate(schedule(name.data()), n) != forward[static_cast<std::size_t>(n - 1)]) FAIL(n);
    }
    for (const Index steps : {0, 1, 5}) {
      for (const Index warmup : {0, 1, 5}) {
        ScheduleOptions options = schedule(name.data());
        options.steps = steps;
        options.warmup_steps = warmup;
        for (Index n = 1; n <= 7; ++n) {
          const double rate = learning_rate(options, n);
          CHECK((std::isfinite(rate) && rate > 0 && rate <= 0.5));
        }
      }
    }
  }
  CHECK_THROWS_WITH_AS(
      learning_rate(schedule("step"), 1),
      "\"step\" is not a learning rate schedule; choose one of constant, noam, inverse_sqrt, cosine, linear, "
      "plateau",
      ConfigError);
}

TEST_CASE("ten updates equal PyTorch's") {  // scripts/make_optimizer_fixture.py
  const auto file = SafetensorsFile::open(WEFT_SOURCE_DIR "/tests/fixtures/optimizers.safetensors");
  const auto steps = static_cast<std::size_t>(file.shape("gradients").at(0));
  const auto size = static_cast<std::size_t>(file.shape("gradients").at(1));
  const auto read = [&](const char* name) {
    std::vector<real> values(static_cast<std::size_t>(file.find(name)->elements()));
    file.read(name, std::span(values));
    return values;
  };
  const auto gradients = read("gradients");
  std::vector<double> rates(steps);
  file.read("rates", std::span(rates));
  const std::pair<const char*, OptimizerOptions> cases[]{
      {"sgd", optimizer("sgd")},
      {"sgd_momentum_decay", optimizer("sgd", 0.1, 0.9)},
      {"adam", optimizer("adam")},
      {"adam_decay", optimizer("adam", 0.1)},
      {"adamw_decay", optimizer("adamw", 0.1)},
  };
  for (const auto& [case_name, options] : cases) {
    const char* const name = case_name;  // Clang captures no structured binding
    CAPTURE(name);
    const auto expected = read(name);
    auto values = read("start");
    const auto made = make_optimizer(options, static_cast<Index>(size));
    for (std::size_t step = 0; step < steps; ++step) {
      // Half of the gradient and a scale of two, so that the scale counts.
      std::vector<real> half(gradients.begin() + static_cast<std::ptrdiff_t>(step * size),
                             gradients.begin() + static_cast<std::ptrdiff_t>((step + 1) * size));
      for (real& g : half) g /= 2;
      made->update(values, half, 2.0, rates[step], static_cast<Index>(step + 1));
      double worst = 0;
      for (std::size_t i = 0; i < size; ++i) {
        const double wanted = expected[step * size + i];
        worst = std::max(worst, std::abs(values[i] - wanted) / (1 + std::abs(wanted)));
      }
      CAPTURE(step);
      CHECK(worst < (kDouble ? 1e-13 : 2e-6));
    }
  }
}

TEST_CASE("one, two and three threads give the same bits, and nothing is allocated") {
  const std::size_t size = 100003;
  const auto gradients = numbers(size, 5);
  for (const OptimizerOptions& options :
       {optimizer("sgd"), optimizer("sgd", 0.1, 0.9), optimizer("adam", 0.1), optimizer("adamw", 0.1)}) {
    std::vector<std::vector<real>> results;
    std::vector<double> norms;
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      auto values = numbers(size, 6);
      const auto made = make_optimizer(options, static_cast<Index>(size));
      parallel_for(count, 1, [](Index, Index) {});  // the first loop of so many threads starts them
      const long before = allocations;
      double norm = 0;
      for (Index n = 1; n <= 3; ++n) {
        norm = gradient_norm(gradients);
        made->update(values, gradients, clip_scale(norm, 1.0), 0.01, n);
      }
      CHECK(allocations == before);
      norms.push_back(norm);
      for (const auto& [name, buffer] : made->state()) values.insert(values.end(), buffer.begin(), buffer.end());
      results.push_back(std::move(values));
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
    CHECK(norms == std::vector<double>(3, norms[0]));
  }
}

TEST_CASE("an optimizer continues from its saved state as if it had never stopped") {
  const std::size_t size = 50;
  for (const OptimizerOptions& options : {optimizer("sgd", 0, 0.9), optimizer("adamw", 0.1)}) {
    auto straight = numbers(size, 1);
    auto stopped = straight;
    const auto first = make_optimizer(options, 50);
    for (Index n = 1; n <= 6; ++n)
      first->update(straight, numbers(size, 10 + static_cast<std::uint64_t>(n)), 1, 0.1, n);
    const auto before = make_optimizer(options, 50);
    const auto after = make_optimizer(options, 50);
    for (Index n = 1; n <= 6; ++n) {
      if (n == 4) {
        const auto from = before->state();
        const auto to = after->state();
        REQUIRE(from.size() == to.size());
        for (std::size_t i = 0; i < from.size(); ++i) {
          CHECK(from[i].first == to[i].first);
          std::copy(from[i].second.begin(), from[i].second.end(), to[i].second.begin());
        }
      }
      (n < 4 ? before : after)->update(stopped, numbers(size, 10 + static_cast<std::uint64_t>(n)), 1, 0.1, n);
    }
    CHECK(stopped == straight);
  }
  CHECK(make_optimizer(optimizer("sgd"), 5)->state().empty());
}

TEST_CASE("the gradient norm is right for every length, and clipping brings it down") {
  for (const std::size_t size : {0u, 1u, 7u, 8u, 17u, 16384u, 16385u, 5000011u}) {
    CAPTURE(size);
    const std::vector<real> gradients(size, real(-3));
    CHECK(gradient_norm(gradients) == near(3 * std::sqrt(static_cast<double>(size))));
  }
  const auto gradients = numbers(100, 2);
  double sum = 0;
  for (const real g : gradients) sum += double{g} * double{g};
  CHECK(gradient_norm(gradients) == near(std::sqrt(sum)));
  CHECK(std::isfinite(gradient_norm(std::vector<real>(10, std::numeric_limits<float>::max()))));
  std::vector<real> bad(20000, real(1));
  bad[19999] = std::numeric_limits<real>::quiet_NaN();
  CHECK(std::isnan(gradient_norm(bad)));

  CHECK(clip_scale(8, 2) == 0.25);
  CHECK(clip_scale(1, 2) == 1);
  CHECK(clip_scale(0, 2) == 1);
  CHECK(clip_scale(8, 0) == 1);
}

TEST_CASE("unknown names, numbers out of range and wrong sizes are refused") {
  CHECK_THROWS_WITH_AS(make_optimizer(optimizer("adamax"), 5),
                       "\"adamax\" is not an optimizer; choose one of sgd, adam, adamw", ConfigError);
  CHECK_THROWS_WITH_AS(make_optimizer(optimizer("sgd", 0, 1), 5),
                       "optimizer.momentum is 1; it must be at least 0 and below 1", ConfigError);
  CHECK_THROWS_AS(make_optimizer(optimizer("adam", -0.1), 5), ConfigError);
  CHECK_THROWS_AS(make_optimizer(optimizer("adam", std::nan("")), 5), ConfigError);
  OptimizerOptions no_epsilon = optimizer("adam");
  no_epsilon.epsilon = 0;
  CHECK_THROWS_AS(make_optimizer(no_epsilon, 5), ConfigError);
  for (const std::string_view name : optimizer_names()) {
    const auto made = make_optimizer(optimizer(name.data()), 5);
    std::vector<real> five(5), six(6);
    CHECK_THROWS_AS(made->update(six, five, 1, 1, 1), ShapeError);
    CHECK_THROWS_AS(made->update(five, six, 1, 1, 1), ShapeError);
  }
}

// What must hold for every row of the op table, and the few things about single ops that the table cannot say.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <numeric>
#include <string>

#include "op_table.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/core/threads.h"

using namespace weft;

// Every allocation of this program is counted; those of the tensor pool are counted by the pool.
namespace {
std::atomic<long> allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* place = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (place == nullptr) throw std::bad_alloc();
  return place;
}
}  // namespace
[[gnu::noinline]] void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(size, static_cast<std::size_t>(alignment));  // throws only where all is lost
}
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::align_val_t) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t, std::align_val_t) noexcept { std::free(place); }

namespace {

constexpr bool kDouble = sizeof(real) == sizeof(double);
constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();

template <class Check>
void for_each_case(Check check) {
  for (const OpRow& row : op_table()) {
    for (const OpCase& op_case : row.cases) {
      INFO(std::string(row.name) << " (" << op_case.what << ")");
      try {
        check(row, op_case);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

/// The largest difference, relative to the largest element or 1.
double difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const double x = static_cast<double>(a.values()[i]), y = static_cast<double>(b.values()[i]);
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  return worst / largest;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.values().size_bytes()) == 0;
}

/// The sum of y times the weights, as far as gradients go.
Var weighted_sum(const Var& y, const Tensor& weights) {
  return y.tape()->record("weighted_sum", Tensor::zeros({1}),
                          [slot = y.slot(), weights](const Tensor&, Tape& tape) { tape.give(slot, weights); });
}
Tensor weights_for(const Var& y) { return random_tensor(y.shape(), 3); }

/// What a recorded run gives: the value, and the gradients of its weighted sum for the inputs that `wants` says.
struct Result {
  Tensor value;
  std::vector<Tensor> gradients;
};
Result run_recorded(const Differentiable& f, const OpCase& c, std::size_t only = static_cast<std::size_t>(-1)) {
  Tape tape;
  std::vector<Var> vars;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    vars.push_back(only >= c.inputs.size() || only == i ? tape.variable(c.inputs[i]) : Var(c.inputs[i]));
  }
  const Var y = f(vars);
  // A reference may come out without a gradient where the op has one of zeros, as with no keys.
  if (y.tape() != nullptr) tape.backward(weighted_sum(y, weights_for(y)));
  Result result{y.value(), {}};
  for (const Var& v : vars) result.gradients.push_back(v.slot() ? tape.gradient(v) : Tensor());
  return result;
}

std::vector<Var> constants(const OpCase& c) { return {c.inputs.begin(), c.inputs.end()}; }

}  // namespace

TEST_CASE("every op that ops.h declares has a row, with cases that record it under its name") {
  std::ifstream header(WEFT_SOURCE_DIR "/autograd/ops.h");
  int declared = 0;
  for (std::string line; std::getline(header, line);) {
    if (line.rfind("Var ", 0) != 0) continue;
    const std::string name = line.substr(4, line.find('(') - 4);
    CHECK_MESSAGE(op_in_table(name), name);
    ++declared;
  }
  CHECK(declared == static_cast<int>(op_table().size()));
  CHECK_FALSE(op_in_table("no_such_op"));
  for (const OpRow& row : op_table()) CHECK_MESSAGE(!row.cases.empty(), std::string(row.name));
  for_each_case([](const OpRow& row, const OpCase& c) {
    Tape tape;
    std::vector<Var> vars;
    for (const Tensor& input : c.inputs) vars.push_back(tape.variable(input));
    c.run(vars);
    const std::vector<std::string_view> names = tape.operations();
    REQUIRE(names.size() == 1);
    CHECK(std::string(names[0]) == std::string(row.name));
  });
}

TEST_CASE("gradients agree with finite differences" * doctest::skip(!kDouble)) {
  const int team = threads();
  set_threads(1);
  double worst = 0;
  std::string place;
  for_each_case([&](const OpRow& row, const OpCase& c) {
    if (c.large()) return;
    const GradientCheck check = gradient_check(c.run, c.inputs);
    CHECK_MESSAGE(check.passed, check.worst_error << " at " << check.worst_place);
    if (check.worst_error <= worst) return;
    worst = check.worst_error;
    place = std::string(row.name) + " (" + c.what + "), " + check.worst_place;
  });
  set_threads(team);
  MESSAGE("worst gradient error of all ops: " << worst << " in " << place);
}

TEST_CASE("gradients are added to what a leaf holds, and overwrite what it does not") {
  for_each_case([](const OpRow&, const OpCase& c) {
    const Result expected = run_recorded(c.run, c);
    for (const bool written : {true, false}) {
      CAPTURE(written);
      std::vector<Leaf> leaves;
      for (const Tensor& input : c.inputs) {
        leaves.push_back({input, Tensor::full(input.shape(), written ? real{3} : kNaN), written});
      }
      Tape tape;
      std::vector<Var> vars;
      for (Leaf& leaf : leaves) vars.push_back(tape.watch(leaf));
      const Var y = c.run(vars);
      tape.backward(weighted_sum(y, weights_for(y)));
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        CAPTURE(i);
        CHECK(leaves[i].written);
        if (written) {
          for (real& g : leaves[i].gradient.values()) g -= 3;
        }
        CHECK(difference(leaves[i].gradient, expected.gradients[i]) < (kDouble ? 1e-13 : 2e-6));
      }
    }
  });
}

TEST_CASE("an input that alone wants a gradient gets the same one") {
  for_each_case([](const OpRow&, const OpCase& c) {
    const Result together = run_recorded(c.run, c);
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      CAPTURE(i);
      const Result alone = run_recorded(c.run, c, i);
      CHECK(same_bits(alone.value, together.value));
      CHECK(same_bits(alone.gradients[i], together.gradients[i]));
    }
  });
}

TEST_CASE("a variable that is two inputs at once gets the sum of both gradients") {
  for_each_case([](const OpRow& row, const OpCase& c) {
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      for (std::size_t j = i + 1; j < c.inputs.size(); ++j) {
        if (c.inputs[i].shape() != c.inputs[j].shape()) continue;
        // The query of attention must be a variable of its own: ops.h has self_attention for the rest.
        if (row.name == "attention" && i == 0) continue;
        CAPTURE(i);
        CAPTURE(j);
        OpCase equal = c;
        equal.inputs[j] = c.inputs[i];
        const Result apart = run_recorded(c.run, equal);
        const Result one = run_recorded(
            [&](Vars v) {
              std::vector<Var> vars(v.begin(), v.end());
              vars[j] = v[i];
              return c.run(vars);
            },
            equal);
        CHECK(same_bits(one.value, apart.value));
        const Tensor sum = add(apart.gradients[i], apart.gradients[j]).value();
        CHECK(difference(one.gradients[i], sum) < (kDouble ? 1e-13 : 2e-6));
      }
    }
  });
}

TEST_CASE("operands that do not fit throw a ShapeError that names the op") {
  for (const OpRow& row : op_table()) {
    for (std::size_t i = 0; i < row.wrong.size(); ++i) {
      const std::string name(row.name);
      INFO(name << ", wrong call " << i);
      try {
        row.wrong[i]();
        FAIL_CHECK("nothing was thrown");
      } catch (const ShapeError& error) {
        const std::string text = error.what();
        CHECK_MESSAGE(text.rfind("[" + name + "] ", 0) == 0, text);
      }
    }
  }
}

TEST_CASE("the value is the same with and without a tape") {
  for_each_case([](const OpRow& row, const OpCase& c) {
    const Var y = c.run(constants(c));
    const Tensor recorded = run_recorded(c.run, c).value;
    CHECK(y.tape() == nullptr);
    if (row.name == "linear") {  // without a tape it multiplies as suits few rows (see kernels.h)
      CHECK(difference(y.value(), recorded) < (kDouble ? 1e-13 : 1e-5));
    } else {
      CHECK(same_bits(y.value(), recorded));
    }
  });
}

TEST_CASE("an op agrees with its reference of elementary ops, in value and gradients") {
  for_each_case([](const OpRow&, const OpCase& c) {
    if (!c.reference) return;
    constexpr double kTolerance = kDouble ? 1e-11 : 1e-4;
    const Result op = run_recorded(c.run, c);
    const Result reference = run_recorded(c.reference, c);
    CHECK(difference(op.value, reference.value) < kTolerance);
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      CAPTURE(i);
      CHECK(difference(op.gradients[i], reference.gradients[i]) < kTolerance);
    }
  });
}

TEST_CASE("a second turn on the same tape takes nothing from the heap") {
  const int team = threads();
  set_threads(1);  // with more, which thread needs scratch memory first is a matter of luck
  for_each_case([](const OpRow&, const OpCase& c) {
    std::vector<Leaf> leaves;
    for (const Tensor& input : c.inputs) leaves.push_back({input, Tensor::zeros(input.shape()), false});
    std::vector<Var> vars(leaves.size());
    Tensor weights;
    Tape tape;
    const auto turn = [&] {
      for (std::size_t i = 0; i < leaves.size(); ++i) vars[i] = tape.watch(leaves[i]);
      const Var y = c.run(vars);
      if (!weights.defined()) weights = weights_for(y);
      tape.backward(weighted_sum(y, weights));
      tape.clear();
    };
    turn();
    const Index from_pool = memory_statistics().heap_allocations;
    const long from_heap = allocations;
    turn();
    const long more = allocations - from_heap;
    CHECK(more == 0);
    CHECK(memory_statistics().heap_allocations == from_pool);
  });
  set_threads(team);
}

TEST_CASE("1, 2 and 3 threads give the same bits") {
  const int team = threads();
  for_each_case([](const OpRow&, const OpCase& c) {
    set_threads(1);
    const Result one = run_recorded(c.run, c);
    for (const int count : {2, 3}) {
      CAPTURE(count);
      set_threads(count);
      const Result more = run_recorded(c.run, c);
      CHECK(same_bits(more.value, one.value));
      for (std::size_t i = 0; i < c.inputs.size(); ++i) CHECK(same_bits(more.gradients[i], one.gradients[i]));
    }
  });
  set_threads(team);
}

namespace {

/// An op as a user writes one outside of the library: x^2, whose derivative is 2 x. The factor is there to be wrong.
Var square(const Var& x, real factor = 2) {
  Tensor y(x.shape());
  for (std::size_t i = 0; i < y.values().size(); ++i) y.values()[i] = x.value().values()[i] * x.value().values()[i];
  if (x.tape() == nullptr) return Var(y);
  return x.tape()->record("square", y, [in = x.value(), slot = x.slot(), factor](const Tensor& gradient, Tape& tape) {
    const Dst dx = tape.sink(slot);
    if (!dx) return;
    for (Index i = 0; i < in.size(); ++i) {
      const real g = factor * in.data()[i] * gradient.data()[i];
      dx.data[i] = dx.beta == 0 ? g : dx.beta * dx.data[i] + g;
    }
  });
}

}  // namespace

TEST_CASE("gradient_check passes an op that is right and fails one that is wrong, in either precision") {
  const std::vector<Tensor> inputs = {random_tensor({3, 5}, 1, 0.5, 2)};
  const GradientCheck right = gradient_check([](Vars v) { return square(v[0]); }, inputs);
  CHECK_MESSAGE(right.passed, right.worst_place);
  const GradientCheck wrong = gradient_check([](Vars v) { return square(v[0], 3); }, inputs);
  CHECK_FALSE(wrong.passed);
  CHECK(wrong.worst_error == doctest::Approx(1. / 3).epsilon(0.01));
  CHECK(wrong.worst_place.rfind("input 0, element ", 0) == 0);
  // One element of many, a forgotten gradient, one that is not a number.
  const auto last_row_wrong = [](Vars v) {
    return concat_rows(std::vector<Var>{square(slice_rows(v[0], 0, 2)), square(slice_rows(v[0], 2, 3), 2.2f)});
  };
  CHECK_FALSE(gradient_check(last_row_wrong, inputs).passed);
  CHECK_FALSE(gradient_check([](Vars v) { return square(Var(v[0].value())); }, inputs).passed);
  CHECK_FALSE(gradient_check([](Vars v) { return square(v[0], kNaN); }, inputs).passed);
  // A kink within reach of the step, a gradient of zeros, no gradient at all.
  const std::vector<Tensor> kinks = {Tensor::of({3}, {0.001f, -0.002f, 1})};
  CHECK(gradient_check([](Vars v) { return relu(v[0]); }, kinks).passed);
  CHECK(gradient_check([](Vars v) { return sum(softmax(v[0])); }, inputs).passed);
  CHECK(gradient_check([](Vars v) { return number(static_cast<double>(v.size())); }, inputs).passed);
}

TEST_CASE("elementwise functions have the values and slopes of the C library") {
  struct Function {
    Var (*op)(const Var&);
    double (*expected)(double);
    bool positive;
  };
  const Function functions[] = {
      {neg, [](double x) { return -x; }, false},
      {exp, [](double x) { return std::exp(x); }, false},
      {log, [](double x) { return std::log(x); }, true},
      {sqrt, [](double x) { return std::sqrt(x); }, true},
      {relu, [](double x) { return x > 0 ? x : 0; }, false},
      {gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.)); }, false},
      {silu, [](double x) { return x / (1 + std::exp(-x)); }, false},
      {tanh, [](double x) { return std::tanh(x); }, false},
      {sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, false},
  };
  for (std::size_t f = 0; f < std::size(functions); ++f) {
    CAPTURE(f);
    Tape tape;
    const Var x = tape.variable(random_tensor({37, 7}, f, functions[f].positive ? 1e-3 : -20, 20));
    const Var y = functions[f].op(x);
    tape.backward(sum(y));
    const Tensor slopes = tape.gradient(x);
    double worst = 0, worst_slope = 0;
    for (std::size_t i = 0; i < slopes.values().size(); ++i) {
      constexpr double kStep = 1e-6;
      const double at = static_cast<double>(x.value().values()[i]);
      const double expected = functions[f].expected(at);
      const double slope = (functions[f].expected(at + kStep) - functions[f].expected(at - kStep)) / (2 * kStep);
      const auto error = [](real got, double want) {
        return std::abs(static_cast<double>(got) - want) / std::max(1., std::abs(want));
      };
      worst = std::max(worst, error(y.value().values()[i], expected));
      worst_slope = std::max(worst_slope, error(slopes.values()[i], slope));
    }
    CHECK(worst < (kDouble ? 1e-14 : 1e-6));
    CHECK(worst_slope < 2e-6);
  }
}

TEST_CASE("matmul multiplies, reshape keeps the order") {
  const Tensor a = random_tensor({5, 17}, 1), b = random_tensor({17, 3}, 2);
  const Tensor c = matmul(a, b).value();
  REQUIRE(c.shape() == Shape{5, 3});
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 3; ++j) {
      double dot = 0;
      for (Index k = 0; k < 17; ++k) {
        dot += static_cast<double>(a.data()[i * 17 + k]) * static_cast<double>(b.data()[k * 3 + j]);
      }
      CHECK(static_cast<double>(c.data()[i * 3 + j]) == doctest::Approx(dot).epsilon(1e-5));
    }
  }
  CHECK(same_bits(reshape(a, {17, 5}).value(), a.reshaped({17, 5})));
}

TEST_CASE("dropout of probability 0 is nothing at all, otherwise drops that share and keeps the mean") {
  Tape tape;
  const Var x = tape.variable(Tensor::full({400, 250}, 1));
  CHECK(dropout(x, {}).slot().index == x.slot().index);
  const Tensor y = dropout(x.value(), kSomeDropout).value();
  double mean = 0, dropped = 0;
  for (const real v : y.values()) {
    mean += static_cast<double>(v) / 1e5;
    dropped += v == 0 ? 1e-5 : 0;
  }
  CHECK(mean == doctest::Approx(1).epsilon(0.01));
  CHECK(dropped == doctest::Approx(0.3).epsilon(0.02));
  DropoutMask other = kSomeDropout;
  ++other.stream.step;
  CHECK_FALSE(same_bits(y, dropout(x.value(), other).value()));
  CHECK(same_bits(y, dropout(x.value(), kSomeDropout).value()));
}

TEST_CASE("cross-entropy counts what it sees; unlikely targets and huge logits stay finite") {
  const std::vector<TokenId> targets = {0, 2};
  const Var logits(Tensor::of({2, 3}, {1, 0, -1, 1, 0, -1}));
  const double log_sum = std::log(std::exp(1) + 1 + std::exp(-1));
  TokenStatistics apart, fused;
  CrossEntropyOptions options;
  options.label_smoothing = static_cast<real>(0.1);
  options.statistics = &apart;
  cross_entropy(logits, targets, options);
  options.statistics = &fused;
  Tensor identity = one_hot({0, 1, 2}, 3).value();
  linear_cross_entropy(logits, identity, Var(), targets, options);
  linear_cross_entropy(logits, identity, Var(), targets, options);
  CHECK(apart.negative_log_likelihood == doctest::Approx((log_sum - 1) + (log_sum + 1)));
  CHECK(apart.correct == 1);
  CHECK(fused.negative_log_likelihood == doctest::Approx(2 * apart.negative_log_likelihood));
  CHECK(fused.correct == 2);

  Tape tape;
  const Var huge = tape.variable(Tensor::of({2, 3}, {1e4f, 0, -1e4f, 1e4f, 0, -1e4f}));
  const Var loss = cross_entropy(huge, targets);
  CHECK(static_cast<double>(loss.value().item()) == doctest::Approx(2e4));
  tape.backward(loss);
  CHECK(difference(tape.gradient(huge), Tensor::of({2, 3}, {0, 0, 0, 1, 0, -1})) < 1e-6);
  CHECK(difference(softmax(huge).value(), Tensor::of({2, 3}, {1, 0, 0, 1, 0, 0})) < 1e-6);
  CHECK(difference(log_softmax(huge).value(), Tensor::of({2, 3}, {0, -1e4f, -2e4f, 0, -1e4f, -2e4f})) < 1e-6);
}

TEST_CASE("kl_divergence takes 0 log 0 as 0, and is 0 between equal distributions") {
  const Var p(Tensor::of({2, 2}, {0.25, 0.75, 0.5, 0.5}));
  CHECK(std::abs(static_cast<double>(kl_divergence(log(p), p).value().item())) < 1e-6);
  const Var sure(Tensor::of({2, 2}, {1, 0, 0, 1}));
  CHECK(static_cast<double>(kl_divergence(log(p), sure).value().item()) ==
        doctest::Approx(-(std::log(0.25) + std::log(0.5)) / 2));
}

#include "check.h"

#include <weft/autograd/gradient_check.h>
#include <weft/autograd/ops.h>
#include <weft/core/random.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "silu_mul.h"

using namespace weft;

namespace {

Tensor random_tensor(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor x(shape);
  for (real& value : x.values()) value = static_cast<real>(4 * random.uniform() - 2);
  return x;
}

GradientCheck check_gradients() {
  const std::vector<Tensor> inputs{random_tensor({3, 5}, 1), random_tensor({3, 5}, 2)};
  return gradient_check([](std::span<const Var> v) { return silu_mul(v[0], v[1]); }, inputs);
}

GradientCheck check_gradients_of_itself() {
  const std::vector<Tensor> inputs{random_tensor({3, 5}, 3)};
  return gradient_check([](std::span<const Var> v) { return silu_mul(v[0], v[0]); }, inputs);
}

/// Whether the op has the values of the same made of the library's ops.
GradientCheck check_values() {
  const Tensor a = random_tensor({70, 130}, 5), b = random_tensor({70, 130}, 6);
  const Tensor y = silu_mul(a, b).value(), expected = mul(silu(a), b).value();
  GradientCheck check;
  for (std::size_t i = 0; i < y.values().size(); ++i) {
    const double error = std::abs(static_cast<double>(y.values()[i]) - static_cast<double>(expected.values()[i]));
    check.worst_error = std::max(check.worst_error, error);
  }
  check.passed = check.worst_error < 1e-5;
  return check;
}

bool report(const char* what, const GradientCheck& check) {
  std::printf("%-34s %.1e  %s\n", what, check.worst_error, check.passed ? "ok" : "WRONG");
  if (!check.passed) std::printf("  worst at %s\n", check.worst_place.c_str());
  return check.passed;
}

}  // namespace

int check_silu_mul() {
  std::printf("tolerance of gradients: %.0e (%s)\n", gradient_check_tolerance(),
              sizeof(real) == sizeof(double) ? "double" : "float; build Weft with WEFT_DOUBLE for a proof");
  bool right = report("silu_mul, values", check_values());
  right = report("silu_mul, gradients", check_gradients()) && right;
  right = report("silu_mul of one variable twice", check_gradients_of_itself()) && right;
  return right ? 0 : 1;
}

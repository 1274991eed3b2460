#include "weft/train/bench_products.h"

#include <algorithm>
#include <chrono>

#include "weft/core/gemm.h"
#include "weft/core/tensor.h"
#include "weft/train/median.h"

namespace weft {
namespace {

/// Operations a second of a product of `flops` operations.
template <class Product>
double time_product(double seconds, double flops, Product product) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); };
  constexpr std::size_t kLeast = 5;
  product();  // brings memory and threads
  std::vector<double> times;
  for (const auto began = Clock::now(); since(began) < seconds || times.size() < kLeast;) {
    const auto start = Clock::now();
    product();
    times.push_back(since(start));
  }
  return flops / median(std::move(times));
}

}  // namespace

std::vector<ProductBenchResult> bench_products(const Config& config, double seconds) {
  constexpr Index kLogitRows = 512;
  const Index rows = config.bench.target_tokens, d_model = config.model.d_model, inner = config.model.d_feed_forward;
  std::vector<ProductBenchResult> results{
      {"query, key, value", rows, 3 * d_model, d_model},
      {"attention output", rows, d_model, d_model},
      {"feed-forward in", rows, inner, d_model},
      {"feed-forward out", rows, d_model, inner},
      {"logits", std::min(rows, kLogitRows), config.bench.vocabulary, d_model},
  };
  for (ProductBenchResult& r : results) {
    const Tensor x = Tensor::full({r.rows, r.in}, 1), weight = Tensor::full({r.out, r.in}, 1);
    Tensor y = Tensor::full({r.rows, r.out}, 1), dx({r.rows, r.in}), dweight({r.out, r.in});
    const double flops = 2 * static_cast<double>(r.rows) * static_cast<double>(r.out) * static_cast<double>(r.in);
    r.forward = time_product(seconds, flops, [&] {
      gemm(r.rows, r.out, r.in, {x.data(), r.in}, {weight.data(), r.in, true}, 0, y.data(), r.out);
    });
    r.backward_x = time_product(seconds, flops, [&] {
      gemm(r.rows, r.in, r.out, {y.data(), r.out}, {weight.data(), r.in}, 0, dx.data(), r.in);
    });
    r.backward_weight = time_product(seconds, flops, [&] {
      gemm(r.out, r.in, r.rows, {y.data(), r.out, true}, {x.data(), r.in}, 0, dweight.data(), r.in);
    });
  }
  return results;
}

}  // namespace weft

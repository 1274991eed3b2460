#include "weft/optim/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "weft/core/error.h"
#include "weft/core/tensor.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 3> kOptimizers{"sgd", "adam", "adamw"};
constexpr Index kTile = 1 << 14;

void check_sizes(std::size_t values, std::size_t gradients, Index size) {
  const auto expected = static_cast<std::size_t>(size);
  if (values != expected || gradients != expected) {
    throw ShapeError(fmt::format("[optimizer] got {} values and {} gradients; it was made for {} parameters", values,
                                 gradients, size));
  }
}

class Sgd : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, Index size)
      : weight_decay_(static_cast<real>(options.weight_decay)),
        momentum_(static_cast<real>(options.momentum)),
        size_(size),
        buffer_(options.momentum != 0 ? Tensor::zeros({size}) : Tensor()) {}

  void update(std::span<real> values, std::span<const real> gradients, double gradient_scale, double learning_rate,
              Index /*update_number*/) override {
    check_sizes(values.size(), gradients.size(), size_);
    const auto scale = static_cast<real>(gradient_scale);
    const auto rate = static_cast<real>(learning_rate);
    const real decay = weight_decay_;
    const real momentum = momentum_;
    parallel_for(size_, kTile, [&](Index begin, Index end) {
      real* x = values.data();
      const real* gradient = gradients.data();
      if (!buffer_.defined()) {
#pragma omp simd
        for (Index i = begin; i < end; ++i) x[i] -= rate * (gradient[i] * scale + decay * x[i]);
        return;
      }
      real* buffer = buffer_.data();  // starts at 0, so the first update sets it to the gradient
#pragma omp simd
      for (Index i = begin; i < end; ++i) {
        buffer[i] = momentum * buffer[i] + (gradient[i] * scale + decay * x[i]);
        x[i] -= rate * buffer[i];
      }
    });
  }

  std::vector<std::pair<std::string, std::span<real>>> state() override {
    if (!buffer_.defined()) return {};
    return {{"momentum", buffer_.values()}};
  }

 private:
  real weight_decay_, momentum_;
  Index size_;
  Tensor buffer_;
};

/// Adam and AdamW, which differ in where the weight decay enters.
class Adam : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, bool decoupled, Index size)
      : options_(options),
        decoupled_(decoupled),
        size_(size),
        first_(Tensor::zeros({size})),
        second_(Tensor::zeros({size})) {}

  void update(std::span<real> values, std::span<const real> gradients, double gradient_scale, double learning_rate,
              Index update_number) override {
    check_sizes(values.size(), gradients.size(), size_);
    const auto n = static_cast<double>(update_number);
    const auto rate = static_cast<real>(learning_rate / (1.0 - std::pow(options_.beta1, n)));
    const auto correction = static_cast<real>(std::sqrt(1.0 - std::pow(options_.beta2, n)));
    const auto scale = static_cast<real>(gradient_scale);
    const auto beta1 = static_cast<real>(options_.beta1), rest1 = static_cast<real>(1.0 - options_.beta1);
    const auto beta2 = static_cast<real>(options_.beta2), rest2 = static_cast<real>(1.0 - options_.beta2);
    const auto epsilon = static_cast<real>(options_.epsilon);
    const auto decay = static_cast<real>(decoupled_ ? 0.0 : options_.weight_decay);
    const auto keep = static_cast<real>(decoupled_ ? 1.0 - learning_rate * options_.weight_decay : 1.0);
    parallel_for(size_, kTile, [&](Index begin, Index end) {
      real* x = values.data();
      const real* gradient = gradients.data();
      real* first = first_.data();
      real* second = second_.data();
#pragma omp simd
      for (Index i = begin; i < end; ++i) {
        const real g = gradient[i] * scale + decay * x[i];
        first[i] = beta1 * first[i] + rest1 * g;
        second[i] = beta2 * second[i] + rest2 * g * g;
        x[i] = keep * x[i] - rate * first[i] / (std::sqrt(second[i]) / correction + epsilon);
      }
    });
  }

  std::vector<std::pair<std::string, std::span<real>>> state() override {
    return {{"first_moment", first_.values()}, {"second_moment", second_.values()}};
  }

 private:
  OptimizerOptions options_;
  bool decoupled_;
  Index size_;
  Tensor first_, second_;
};

/// Throws if the number is outside [0, limit); written so that NaN is outside.
void check_range(std::string_view name, double value, double limit) {
  if (value >= 0 && value < limit) return;
  throw ConfigError(fmt::format("optimizer.{} is {}; it must be at least 0 and {}", name, value,
                                std::isinf(limit) ? "finite" : fmt::format("below {}", limit)));
}

}  // namespace

std::span<const std::string_view> optimizer_names() { return kOptimizers; }

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, Index size) {
  check_range("beta1", options.beta1, 1);
  check_range("beta2", options.beta2, 1);
  check_range("momentum", options.momentum, 1);
  check_range("epsilon", options.epsilon, HUGE_VAL);
  if (static_cast<float>(options.epsilon) == 0) {  // 0 would be divided by 0 where no gradient has been yet
    throw ConfigError(fmt::format("optimizer.epsilon is {}; it must be above 0, for example 1e-9", options.epsilon));
  }
  check_range("weight_decay", options.weight_decay, HUGE_VAL);
  if (options.name == "sgd") return std::make_unique<Sgd>(options, size);
  if (options.name == "adam") return std::make_unique<Adam>(options, false, size);
  if (options.name == "adamw") return std::make_unique<Adam>(options, true, size);
  throw ConfigError(
      fmt::format("\"{}\" is not an optimizer; choose one of {}", options.name, fmt::join(kOptimizers, ", ")));
}

double gradient_norm(std::span<const real> gradients) {
  constexpr Index kMaxTiles = 256;
  // Sums side by side, as many whatever the width of the CPU's vectors.
  constexpr Index kLanes = 8, kVectors = 4;
  using Part = real __attribute__((vector_size(kLanes * sizeof(real))));
  using Sums = double __attribute__((vector_size(kLanes * sizeof(double))));
  const auto size = static_cast<Index>(gradients.size());
  const Index tile = std::max(kTile, (size + kMaxTiles - 1) / kMaxTiles);
  std::array<double, kMaxTiles> of_tiles{};
  parallel_for(size, tile, [&](Index begin, Index end) {
    Sums sums[kVectors] = {};
    const real* gradient = gradients.data();
    Index i = begin;
    for (; i + kVectors * kLanes <= end; i += kVectors * kLanes) {
#pragma GCC unroll 4
      for (Index v = 0; v < kVectors; ++v) {
        Part part;
        std::memcpy(&part, gradient + i + v * kLanes, sizeof part);
        const Sums g = __builtin_convertvector(part, Sums);
        sums[v] += g * g;
      }
    }
    for (; i < end; ++i) {
      const auto g = static_cast<double>(gradient[i]);
      sums[0][(i - begin) % kLanes] += g * g;
    }
    const Sums all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double sum = 0;
    for (Index lane = 0; lane < kLanes; ++lane) sum += all[lane];
    of_tiles[static_cast<std::size_t>(begin / tile)] = sum;
  });
  double sum = 0;
  for (const double of_tile : of_tiles) sum += of_tile;
  return std::sqrt(sum);
}

double clip_scale(double norm, double clip_norm) { return clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0; }

}  // namespace weft

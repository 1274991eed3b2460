// Optimizers: one pass over the flat buffer of all parameters and the flat buffer of all gradients. Each
// element's new value depends on that element alone, so the bits are the same for any number of threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// What an optimizer is made of. The defaults of beta1, beta2 and epsilon are those of Vaswani et al. 2017,
/// section 5.3.
struct OptimizerOptions {
  std::string name = "adam";  ///< one of optimizer_names()
  double beta1 = 0.9;         ///< adam, adamw: decay of the mean of gradients
  double beta2 = 0.98;        ///< adam, adamw: decay of the mean of squared gradients
  double epsilon = 1e-9;      ///< adam, adamw: keeps the division finite
  double weight_decay = 0.0;  ///< pulls all parameters towards 0, biases and norms too
  double momentum = 0.0;      ///< sgd
};

/// Changes parameters by their gradients and keeps what it must remember between updates.
class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Makes update `update_number`, counted from 1, with the gradients times gradient_scale. Allocates
  /// nothing. Throws ShapeError if the buffers have not the size given to make_optimizer.
  virtual void update(std::span<real> values, std::span<const real> gradients, double gradient_scale,
                      double learning_rate, Index update_number) = 0;

  /// The buffers that a checkpoint must hold, with their names; each has the size of the parameters and
  /// starts at 0.
  virtual std::vector<std::pair<std::string, std::span<real>>> state() = 0;
};

/// The names that an optimizer may have: sgd, adam, adamw.
std::span<const std::string_view> optimizer_names();

/// Makes an optimizer for `size` parameters. With g the scaled gradient, x the parameter, r the learning
/// rate, n the update number and d = weight_decay, it computes what the PyTorch optimizer of that name does:
///
///   sgd    g += d x;  b = momentum b + g;  x -= r b
///   adam   g += d x;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///          x -= r / (1 - beta1^n) m / (sqrt(v) / sqrt(1 - beta2^n) + epsilon)
///   adamw  x -= r d x instead of g += d x, else as adam
///
/// The state of sgd is "momentum" (b), or nothing if the momentum is 0; of the others "first_moment" (m) and
/// "second_moment" (v). Throws ConfigError if the name is unknown or a number is out of its range. Sources:
/// Kingma and Ba 2015, "Adam", algorithm 1; Loshchilov and Hutter 2019, "Decoupled weight decay
/// regularization", algorithm 2, where the decay is r d as in PyTorch.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, Index size);

/// Returns the L2 norm of all gradients as one vector, summed in double in an order that depends on their
/// number alone.
double gradient_norm(std::span<const real> gradients);

/// Returns the factor that brings gradients of norm `norm` down to at most clip_norm: clip_norm / norm, or 1
/// if they are shorter or clip_norm is 0. The caller has dealt with a norm that is not finite before; here
/// NaN gives 1. Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks",
/// algorithm 1.
double clip_scale(double norm, double clip_norm);

}  // namespace weft

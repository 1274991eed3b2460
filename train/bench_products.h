// How near the matrix products of a model come to what the machine could do, each by itself: what a training step could be
// if nothing but products took time.
#pragma once

#include <string>
#include <vector>

#include "weft/train/config.h"

namespace weft {

/// The three products of a linear layer: y = x W^T, dx = dy W, dW = dy^T x, for x [rows, in] and W [out, in].
struct ProductBenchResult {
  std::string name;
  Index rows = 0, out = 0, in = 0;
  double forward = 0, backward_x = 0, backward_weight = 0;  ///< operations a second, medians
};

/// Times the products of the config's layers at the rows of its benchmark batch (for logits, of a chunk of them). `seconds`
/// is spent on each.
std::vector<ProductBenchResult> bench_products(const Config& config, double seconds = 0.1);

}  // namespace weft

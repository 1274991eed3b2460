// The first number of a forward and backward pass that is not finite. A tape that has a detector shows it each parameter
// as it is read, each operation's result as it is made, and each gradient as it is written, so that the first found is the
// first there was. Without a detector a tape looks at no number.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/tensor.h"

namespace weft {

struct Leaf;

/// A number that is not finite, and where it came up.
struct Anomaly {
  bool backward = false;
  std::string op = {};         ///< the operation at work; empty if a parameter had the number before
  Index number = 0;            ///< of the operation in the forward pass, from 1
  Shape result = {};           ///< of the operation
  Shape shape = {};            ///< of the tensor with the number: parameter, result, or gradient
  Index element = 0;           ///< its place there, in row-major order
  double value = 0;            ///< the number
  const Leaf* leaf = nullptr;  ///< the parameter whose value or gradient it is in, if it is in one
  const Leaf* near = nullptr;  ///< the parameter that was read last before the operation ran forward, if one was
};

/// The place of the first element that is NaN or infinite; -1 if all are finite.
Index first_not_finite(std::span<const real> values);

/// The place of an element as the indices of its dimensions: "[3, 17]".
std::string element_index(const Shape& shape, Index element);

/// Watches a tape until it has found something.
class AnomalyDetector {
 public:
  const std::optional<Anomaly>& found() const { return found_; }
  /// Forgets what was found.
  void reset() { found_.reset(); }

  // What a tape tells. `number` is the operation's, from 1.

  /// A new recording begins.
  void begin();
  void watched(const Leaf& leaf);
  void forward(std::string_view op, Index number, const Tensor& result);
  /// The operation's backward pass has written this gradient, of a parameter unless `leaf` is null.
  void backward(std::string_view op, Index number, const Shape& result, const Tensor& gradient, const Leaf* leaf);

 private:
  std::optional<Anomaly> found_;
  const Leaf* last_ = nullptr;       // the parameter that was read last
  std::vector<const Leaf*> nearby_;  // for each operation the one that was last when it ran
};

}  // namespace weft

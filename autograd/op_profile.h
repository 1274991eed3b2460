// Where the time of forward and backward passes goes, by operation. A tape that has a profile tells it of each operation
// as it ends; the time since the operation before counts for it, so operations themselves know nothing of it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/tensor.h"

namespace weft {

/// Sums of times.
class OpProfile {
 public:
  struct Row {
    std::string name;  ///< the operation, with the columns of its result
    double calls = 0;
    double forward = 0, backward = 0;  ///< seconds
  };

  /// What is done from now on belongs to what is noted next.
  void start() { mark_ = Clock::now(); }
  /// An operation has run forward, with a result of this shape, or backward.
  void forward(std::string_view op, const Shape& result);
  void backward(std::string_view op, const Shape& result);
  /// Something else has run.
  void other(std::string_view name);

  /// The rows, by falling time.
  std::vector<Row> rows() const;

 private:
  using Clock = std::chrono::steady_clock;

  double lap();

  Clock::time_point mark_ = Clock::now();
  std::map<std::pair<std::string, Index>, Row> rows_;  // by name and columns; -1: no operation
};

}  // namespace weft

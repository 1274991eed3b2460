// Sums, views, slices and concatenations.
#include <fmt/format.h>

#include "weft/autograd/ops.h"
#include "weft/autograd/shape_checks.h"
#include "weft/core/error.h"

namespace weft {
namespace {

/// factor times a sum; `op` is "sum" or "mean".
Var reduce(std::string_view op, const Var& x, Over over, real factor) {
  const Index T = x.rows(), D = x.cols();
  Tensor y(over == Over::kAll ? Shape{1} : over == Over::kRows ? Shape{D} : Shape{T});
  switch (over) {
    case Over::kAll:
      *y.data() = static_cast<real>(sum_all(x.value().size(), x.value().data()));
      break;
    case Over::kRows:
      sum_rows(T, D, x.value().data(), {y.data(), 0});
      break;
    case Over::kColumns:
      sum_columns(T, D, x.value().data(), {y.data(), 0});
      break;
  }
  if (factor != 1) accumulate_scaled(y.size(), factor, y.data(), {y.data(), 0});
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record(op, std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    const Dst dx = t.sink(x);
    if (!dx) return;
    for (Index r = 0; r < T; ++r) {
      for (Index d = 0; d < D; ++d) {
        const real g = factor * dy.data()[over == Over::kAll ? 0 : over == Over::kRows ? d : r];
        real& out = dx.data[r * D + d];
        out = dx.beta == 0 ? g : dx.beta * out + g;
      }
    }
  });
}

Index reduced_count(const Var& x, Over over) {
  return over == Over::kAll ? x.value().size() : over == Over::kRows ? x.rows() : x.cols();
}

void require_parts(std::string_view op, std::span<const Var> parts, int equal_dimension) {
  if (parts.empty()) throw ShapeError(fmt::format("[{}] no parts; at least one is needed", op));
  for (const Var& part : parts) {
    require_matrix(op, "part", part);
    if (part.shape()[equal_dimension] != parts[0].shape()[equal_dimension]) {
      throw ShapeError(fmt::format("[{}] parts {} and {} must have equal {}", op, to_string(parts[0].shape()),
                                   to_string(part.shape()), equal_dimension == 1 ? "columns" : "rows"));
    }
  }
}

/// Where a part of a concatenation goes.
struct Placed {
  Slot slot;
  Index begin, length;
};

Tape* common_tape(std::span<const Var> parts) {
  Tape* tape = nullptr;
  for (const Var& part : parts) {
    if (part.tape() != nullptr && tape != nullptr && part.tape() != tape) {
      throw ShapeError("[tape] the arguments are on two tapes");
    }
    if (part.tape() != nullptr) tape = part.tape();
  }
  return tape;
}

/// Copies, or on the way back hands out, the columns of a matrix of `width` columns.
Var concat(std::string_view op, std::span<const Var> parts, bool below) {
  require_parts(op, parts, below ? 1 : 0);
  Index total = 0;
  for (const Var& part : parts) total += part.shape()[below ? 0 : 1];
  const Index T = below ? total : parts[0].shape()[0], D = below ? parts[0].shape()[1] : total;
  Tensor y({T, D});
  Tape* tape = common_tape(parts);
  Index begin = 0;
  for (const Var& part : parts) {
    copy_block(part.rows(), part.cols(), part.value().data(), part.cols(), {y.data() + (below ? begin * D : begin), 0},
               D);
    begin += part.shape()[below ? 0 : 1];
  }
  if (tape == nullptr) return y;
  const std::span<Placed> places = tape->keep_new<Placed>(parts.size());
  begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Index length = parts[i].shape()[below ? 0 : 1];
    places[i] = {parts[i].slot(), begin, length};
    begin += length;
  }
  return tape->record(op, std::move(y), [=](const Tensor& dy, Tape& t) {
    for (const Placed& part : places) {
      const Index rows = below ? part.length : T, columns = below ? D : part.length;
      copy_block(rows, columns, dy.data() + (below ? part.begin * D : part.begin), D, t.sink(part.slot), columns);
    }
  });
}

/// Sets the elements of dx outside of the block to beta * dx.
void start_outside(Index T, Index D, Index row_begin, Index row_end, Index begin, Index end, Dst dx) {
  if (dx.beta == 1) return;
  for (Index r = 0; r < T; ++r) {
    for (Index d = 0; d < D; ++d) {
      if (r >= row_begin && r < row_end && d >= begin && d < end) continue;
      dx.data[r * D + d] = dx.beta == 0 ? 0 : dx.beta * dx.data[r * D + d];
    }
  }
}

}  // namespace

Var sum(const Var& x, Over over) {
  if (!x.defined()) throw ShapeError("[sum] x is missing");
  return reduce("sum", x, over, 1);
}

Var mean(const Var& x, Over over) {
  if (!x.defined() || reduced_count(x, over) == 0) {
    throw ShapeError(fmt::format("[mean] x {} has nothing to take the mean of", to_string(x.shape())));
  }
  return reduce("mean", x, over, 1 / static_cast<real>(reduced_count(x, over)));
}

Var reshape(const Var& x, const Shape& shape) {
  if (!x.defined()) throw ShapeError("[reshape] x is missing");
  Tensor y = x.value().reshaped(shape);
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record("reshape", std::move(y), [x = x.slot()](const Tensor& dy, Tape& t) { t.give(x, dy); });
}

Var transpose(const Var& x) {
  require_matrix("transpose", "x", x);
  const Index T = x.shape()[0], D = x.shape()[1];
  Tensor y({D, T});
  transpose(T, D, x.value().data(), {y.data(), 0});
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record("transpose", std::move(y),
                      [=, x = x.slot()](const Tensor& dy, Tape& t) { transpose(D, T, dy.data(), t.sink(x)); });
}

Var slice_rows(const Var& x, Index begin, Index end) {
  require_matrix("slice_rows", "x", x);
  const Index T = x.shape()[0], D = x.shape()[1];
  require_range("slice_rows", begin, end, T);
  Tensor y = x.value().row_range(begin, end);
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record("slice_rows", std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    const Dst dx = t.sink(x);
    if (!dx) return;
    start_outside(T, D, begin, end, 0, D, dx);
    accumulate(dy.size(), dy.data(), {dx.data + begin * D, dx.beta});
  });
}

Var slice_columns(const Var& x, Index begin, Index end) {
  require_matrix("slice_columns", "x", x);
  const Index T = x.shape()[0], D = x.shape()[1], width = end - begin;
  require_range("slice_columns", begin, end, D);
  Tensor y({T, width});
  copy_block(T, width, x.value().data() + begin, D, {y.data(), 0}, width);
  Tape* tape = x.tape();
  if (tape == nullptr) return y;
  return tape->record("slice_columns", std::move(y), [=, x = x.slot()](const Tensor& dy, Tape& t) {
    const Dst dx = t.sink(x);
    if (!dx) return;
    start_outside(T, D, 0, T, begin, end, dx);
    copy_block(T, width, dy.data(), width, {dx.data + begin, dx.beta}, D);
  });
}

Var concat_rows(std::span<const Var> parts) { return concat("concat_rows", parts, true); }
Var concat_columns(std::span<const Var> parts) { return concat("concat_columns", parts, false); }

}  // namespace weft

#include "weft/autograd/shape_checks.h"

#include <fmt/format.h>

#include "weft/core/error.h"

namespace weft {

void require_matrix(std::string_view op, std::string_view name, const Var& x) {
  if (!x.defined() || x.shape().rank() != 2) {
    throw ShapeError(fmt::format("[{}] {} {} must be a matrix", op, name, to_string(x.shape())));
  }
}

void require_shape(std::string_view op, std::string_view name, const Var& x, const Shape& shape,
                   std::string_view rule) {
  if (!x.defined() || x.shape() != shape) {
    throw ShapeError(fmt::format("[{}] {} {} must be {}: {}", op, name, to_string(x.shape()), to_string(shape), rule));
  }
}

void require_same_shape(std::string_view op, std::string_view a_name, const Var& a, std::string_view b_name,
                        const Var& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape()) {
    throw ShapeError(fmt::format("[{}] {} {} and {} {} must have one shape", op, a_name, to_string(a.shape()), b_name,
                                 to_string(b.shape())));
  }
}

void require_rows(std::string_view op, std::string_view name, const Var& x, const Ragged& rows) {
  require_matrix(op, name, x);
  if (x.shape()[0] != rows.rows()) {
    throw ShapeError(fmt::format("[{}] {} {} must have the {} rows of its {} sequences", op, name, to_string(x.shape()),
                                 rows.rows(), rows.sequences()));
  }
}

void require_range(std::string_view op, Index begin, Index end, Index size) {
  if (begin < 0 || end < begin || end > size) {
    throw ShapeError(fmt::format("[{}] range {} to {} must lie within 0 to {}", op, begin, end, size));
  }
}

void require_ids(std::string_view op, std::string_view name, std::span<const TokenId> ids, Index size) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= size) {
      throw ShapeError(fmt::format("[{}] {} {} is {}; must be at least 0 and below {}", op, name, i, ids[i], size));
    }
  }
}

}  // namespace weft

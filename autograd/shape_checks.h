// Shape checks shared by the ops, with texts that name the operation, both shapes and the rule.
#pragma once

#include <span>
#include <string_view>

#include "weft/autograd/tape.h"
#include "weft/core/ragged.h"

namespace weft {

/// Throws unless `x` is a defined matrix.
void require_matrix(std::string_view op, std::string_view name, const Var& x);
/// Throws unless `x` has exactly `shape`; `rule` says where that shape comes from.
void require_shape(std::string_view op, std::string_view name, const Var& x, const Shape& shape, std::string_view rule);
/// Throws unless both have one shape.
void require_same_shape(std::string_view op, std::string_view a_name, const Var& a, std::string_view b_name,
                        const Var& b);
/// Throws unless the rows of `x` are those of `rows`.
void require_rows(std::string_view op, std::string_view name, const Var& x, const Ragged& rows);
/// Throws unless 0 <= begin <= end <= size.
void require_range(std::string_view op, Index begin, Index end, Index size);
/// Throws unless every id is in [0, size).
void require_ids(std::string_view op, std::string_view name, std::span<const TokenId> ids, Index size);

}  // namespace weft

// Operations that know where sequences begin and end: embeddings, positions, attention.
#include <fmt/format.h>

#include "weft/autograd/ops.h"
#include "weft/autograd/shape_checks.h"
#include "weft/core/error.h"

namespace weft {
namespace {

/// Which columns of which argument an operand of attention is.
struct Columns {
  Slot slot;
  Tensor matrix;
  Index begin;

  const real* data() const { return matrix.data() + begin; }
  Index stride() const { return matrix.cols(); }
  Dst at(Dst whole) const { return whole ? Dst{whole.data + begin, whole.beta} : Dst{}; }
};

Columns columns(const Var& x, Index begin) { return {x.slot(), x.value(), begin}; }

/// Attention on columns of one, two or three arguments; `q`, `k` and `v` of one argument share one sink.
Var attention_op(std::string_view op, Tape* tape, const Columns& q, const Columns& k, const Columns& v, Index d_model,
                 const Ragged& query_rows, const Ragged& key_rows, const AttentionOptions& options) {
  if (options.heads < 1 || d_model % options.heads != 0) {
    throw ShapeError(fmt::format("[{}] d_model {} must be a multiple of heads {}", op, d_model, options.heads));
  }
  if (query_rows.sequences() != key_rows.sequences()) {
    throw ShapeError(fmt::format("[{}] {} query sequences and {} key sequences; the numbers must be equal", op,
                                 query_rows.sequences(), key_rows.sequences()));
  }
  if (options.causal && query_rows != key_rows) {
    throw ShapeError(fmt::format("[{}] causal attention needs the same rows for queries and keys", op));
  }
  AttentionOperands a{q.data(),
                      k.data(),
                      v.data(),
                      q.stride(),
                      k.stride(),
                      v.stride(),
                      query_rows.offsets(),
                      key_rows.offsets(),
                      options.heads,
                      d_model / options.heads,
                      options.causal,
                      options.dropout};
  Tensor y({query_rows.rows(), d_model});
  Tensor log_sum = tape != nullptr ? Tensor({query_rows.rows(), options.heads}) : Tensor();
  Tensor weights;
  if (options.weights != nullptr) {
    Index size = 0;
    for (Index s = 0; s < query_rows.sequences(); ++s)
      size += options.heads * query_rows.length(s) * key_rows.length(s);
    weights = Tensor({size});
  }
  attention(a, y.data(), log_sum.data(), weights.data());
  if (options.weights != nullptr) {
    options.weights->clear();
    Index begin = 0;
    for (Index s = 0; s < query_rows.sequences(); ++s) {
      const Shape shape{options.heads, query_rows.length(s), key_rows.length(s)};
      options.weights->push_back(weights.view(begin, shape));
      begin += shape.size();
    }
  }
  if (tape == nullptr) return y;
  a.query_offsets = tape->keep(query_rows.offsets());
  a.key_offsets = tape->keep(key_rows.offsets());
  return tape->record(op, std::move(y), [=](const Tensor& dy, Tape& t) {
    const Dst q_sink = t.sink(q.slot);
    // Other columns of the same matrix share its sink; the very same columns (key and value alike) are added to.
    const Dst k_sink = k.slot.index == q.slot.index ? q_sink : t.sink(k.slot);
    const Dst v_sink = v.slot.index == k.slot.index && v.begin != k.begin ? k_sink : t.sink(v.slot);
    attention_backward(a, log_sum.data(), dy.data(), q.at(q_sink), k.at(k_sink), v.at(v_sink));
  });
}

}  // namespace

Var embedding(const Var& table, std::span<const TokenId> ids, real factor) {
  require_matrix("embedding", "table", table);
  const Index V = table.shape()[0], D = table.shape()[1];
  require_ids("embedding", "id", ids, V);
  Tensor y({static_cast<Index>(ids.size()), D});
  gather_rows(ids, D, factor, table.value().data(), y.data());
  Tape* tape = table.tape();
  if (tape == nullptr) return y;
  const auto kept = tape->keep(ids);
  return tape->record("embedding", std::move(y), [=, table = table.slot()](const Tensor& dy, Tape& t) {
    scatter_rows(kept, V, D, factor, dy.data(), t.sink(table));
  });
}

Var add_positions(const Var& x, const Var& table, const Ragged& rows, Index first) {
  require_rows("add_positions", "x", x, rows);
  require_matrix("add_positions", "table", table);
  const Index P = table.shape()[0], D = table.shape()[1];
  if (x.shape()[1] != D) {
    throw ShapeError(fmt::format("[add_positions] x {} and table {} must have equal columns", to_string(x.shape()),
                                 to_string(table.shape())));
  }
  for (Index s = 0; s < rows.sequences(); ++s) {
    if (first < 0 || first + rows.length(s) > P) {
      throw ShapeError(fmt::format("[add_positions] sequence {} has positions {} to {}; the table has {}", s, first,
                                   first + rows.length(s), P));
    }
  }
  Tensor y(x.shape());
  add_positions(rows.offsets(), D, first, x.value().data(), table.value().data(), y.data());
  Tape* tape = tape_of(x, table);
  if (tape == nullptr) return y;
  const auto offsets = tape->keep(rows.offsets());
  return tape->record("add_positions", std::move(y),
                      [=, x = x.slot(), table = table.slot()](const Tensor& dy, Tape& t) {
                        add_positions_backward(offsets, P, D, first, dy.data(), t.sink(table));
                        t.give(x, dy);
                      });
}

Var attention(const Var& query, const Var& key, const Var& value, const Ragged& query_rows, const Ragged& key_rows,
              const AttentionOptions& options) {
  require_rows("attention", "query", query, query_rows);
  require_rows("attention", "key", key, key_rows);
  require_same_shape("attention", "key", key, "value", value);
  if (query.cols() != key.cols()) {
    throw ShapeError(fmt::format("[attention] query {} and key {} must have equal columns", to_string(query.shape()),
                                 to_string(key.shape())));
  }
  const real* shared = query.value().data();
  if (query.slot() &&
      ((key.slot() && key.value().data() == shared) || (value.slot() && value.value().data() == shared))) {
    throw ShapeError(
        "[attention] query, key and value must be different variables; use self_attention for a joint one");
  }
  return attention_op("attention", tape_of(query, key, value), columns(query, 0), columns(key, 0), columns(value, 0),
                      query.cols(), query_rows, key_rows, options);
}

Var self_attention(const Var& qkv, const Ragged& rows, const AttentionOptions& options) {
  require_rows("self_attention", "qkv", qkv, rows);
  if (qkv.cols() % 3 != 0) {
    throw ShapeError(fmt::format("[self_attention] qkv {} must have 3 d_model columns", to_string(qkv.shape())));
  }
  const Index d_model = qkv.cols() / 3;
  return attention_op("self_attention", qkv.tape(), columns(qkv, 0), columns(qkv, d_model), columns(qkv, 2 * d_model),
                      d_model, rows, rows, options);
}

Var cross_attention(const Var& query, const Var& kv, const Ragged& query_rows, const Ragged& key_rows,
                    const AttentionOptions& options) {
  require_rows("cross_attention", "query", query, query_rows);
  require_rows("cross_attention", "kv", kv, key_rows);
  const Index d_model = query.cols();
  if (kv.cols() != 2 * d_model) {
    throw ShapeError(fmt::format("[cross_attention] kv {} must have twice the columns of query {}",
                                 to_string(kv.shape()), to_string(query.shape())));
  }
  return attention_op("cross_attention", tape_of(query, kv), columns(query, 0), columns(kv, 0), columns(kv, d_model),
                      d_model, query_rows, key_rows, options);
}

}  // namespace weft

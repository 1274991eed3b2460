// Rows of the op table for sequences, attention, norms and losses.
#include <cmath>
#include <utility>

#include "op_table.h"

namespace weft {
namespace {

constexpr auto kEpsilon = static_cast<real>(1e-5);
constexpr real kMinusInfinity = -1e30f;

// ---- references from elementary ops ---------------------------------------------------------------------------------

// Rows are reduced as the columns of the transpose, over which row vectors spread.

Var softmax_reference(const Var& x) {
  const Var e = exp(transpose(reshape(x, {x.rows(), x.cols()})));
  return reshape(transpose(div(e, sum(e, Over::kRows))), x.shape());
}

Var layer_norm_reference(const Var& x, const Var& gain, const Var& shift) {
  const Var columns = transpose(reshape(x, {x.rows(), x.cols()}));
  const Var centred = sub(columns, mean(columns, Over::kRows));
  const Var variance = mean(mul(centred, centred), Over::kRows);
  const Var normal = transpose(div(centred, sqrt(add(variance, number(static_cast<double>(kEpsilon))))));
  return reshape(add(mul(normal, gain), shift), x.shape());
}

Var attention_reference(const Var& query, const Var& key, const Var& value, const Ragged& query_rows,
                        const Ragged& key_rows, const AttentionOptions& options) {
  const Index d_head = query.cols() / options.heads;
  std::vector<Var> sequences;
  for (Index s = 0; s < query_rows.sequences(); ++s) {
    const Index queries = query_rows.length(s), keys = key_rows.length(s);
    if (queries == 0) continue;
    if (keys == 0) {
      sequences.push_back(zeros({queries, query.cols()}));
      continue;
    }
    std::vector<Var> heads;
    for (Index h = 0; h < options.heads; ++h) {
      const auto block = [&](const Var& x, const Ragged& rows) {
        return slice_columns(slice_rows(x, rows.begin(s), rows.end(s)), h * d_head, (h + 1) * d_head);
      };
      Var scores = scale(matmul(block(query, query_rows), block(key, key_rows), false, true),
                         static_cast<real>(1 / std::sqrt(static_cast<double>(d_head))));
      Tensor future = Tensor::zeros({queries, keys});
      Tensor mask(future.shape());
      for (Index i = 0; i < queries; ++i) {
        const Index row = (query_rows.begin(s) + i) * options.heads + h;
        dropout_factors(options.dropout, static_cast<std::uint64_t>(row), keys, mask.data() + i * keys);
        for (Index j = i + 1; options.causal && j < keys; ++j) future.data()[i * keys + j] = kMinusInfinity;
      }
      const Var weights = softmax(add(scores, Var(future)));
      heads.push_back(matmul(mul(weights, Var(mask)), block(value, key_rows)));
    }
    sequences.push_back(concat_columns(heads));
  }
  return sequences.empty() ? zeros({0, query.cols()}) : concat_rows(sequences);
}

Var cross_entropy_reference(const Var& logits, const std::vector<TokenId>& targets,
                            const CrossEntropyOptions& options) {
  const std::vector<Index> classes(targets.begin(), targets.end());
  const real smoothing = options.label_smoothing;
  const Var wanted = add(one_hot(classes, logits.cols(), 1 - smoothing),
                         number(static_cast<double>(smoothing) / static_cast<double>(logits.cols())));
  return scale(sum(mul(log_softmax(logits), wanted)), -options.factor);
}

// ---- sequences ------------------------------------------------------------------------------------------------------

std::vector<TokenId> random_ids(Index count, Index bound, std::uint64_t seed) {
  Random random(seed);
  std::vector<TokenId> ids;
  for (Index i = 0; i < count; ++i) {
    ids.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(bound))));
  }
  return ids;
}

OpRow embedding_row() {
  OpRow row{"embedding", {}, {}};
  struct Size {
    Index vocabulary, d_model, ids;
  };
  for (const Size& s : {Size{7, 5, 9}, {3, 17, 1}, {4, 33, 0}, {30, 200, 3}, {1003, 37, 999}}) {
    const std::vector<TokenId> ids = random_ids(s.ids, s.vocabulary, 5);
    row.cases.push_back(random_case(
        std::to_string(s.ids) + " ids", {{s.vocabulary, s.d_model}},
        [ids](Vars v) { return embedding(v[0], ids, 2.5f); },
        [ids, s](Vars v) {
          return matmul(one_hot({ids.begin(), ids.end()}, s.vocabulary, 2.5f), v[0]);
        }));
  }
  row.wrong = {[] {
                 embedding(zeros({4, 3}), std::vector<TokenId>{0, 4});
               },
               [] {
                 embedding(zeros({4, 3}), std::vector<TokenId>{-1});
               }};
  return row;
}

OpRow add_positions_row() {
  OpRow row{"add_positions", {}, {}};
  struct Size {
    std::vector<Index> lengths;
    Index d_model, positions, first;
  };
  for (const Size& s : {Size{{3, 1, 4}, 5, 4, 0},
                        {{0, 2, 0, 3}, 17, 7, 2},
                        {{1}, 33, 6, 5},
                        {{0}, 5, 3, 0},
                        {{}, 5, 3, 0},
                        {{2, 1}, 200, 2, 0},
                        {{150, 201, 170}, 49, 220, 1}}) {
    const Ragged rows = Ragged::of_lengths(s.lengths);
    row.cases.push_back(random_case(
        std::to_string(s.lengths.size()) + " sequences from " + std::to_string(s.first),
        {{rows.rows(), s.d_model}, {s.positions, s.d_model}},
        [rows, s](Vars v) { return add_positions(v[0], v[1], rows, s.first); },
        [rows, s](Vars v) {
          std::vector<Index> positions;
          for (Index q = 0; q < rows.sequences(); ++q) {
            for (Index i = 0; i < rows.length(q); ++i) positions.push_back(s.first + i);
          }
          return add(v[0], matmul(one_hot(positions, s.positions), v[1]));
        }));
  }
  const Ragged rows = Ragged::of_lengths({3, 2});
  row.wrong = {[rows] {
                 add_positions(zeros({5, 4}), zeros({2, 4}), rows);
               },
               [rows] {
                 add_positions(zeros({5, 4}), zeros({3, 4}), rows, 1);
               },
               [rows] {
                 add_positions(zeros({5, 4}), zeros({3, 5}), rows);
               },
               [rows] {
                 add_positions(zeros({4, 4}), zeros({3, 4}), rows);
               },
               [rows] {
                 add_positions(zeros({5, 4}), zeros({3, 4}), rows, -1);
               }};
  return row;
}

/// The three attention ops differ in how the operands are packed.
enum class Packing { kApart, kKeyValue, kAll };

OpRow attention_row(std::string_view name, Packing packing) {
  OpRow row{name, {}, {}};
  struct Size {
    std::vector<Index> queries, keys;
    Index d_model, heads;
    bool causal, drop;
  };
  const std::vector<Size> sizes = {{{3, 1, 4}, {3, 1, 4}, 10, 2, true, false},
                                   {{3, 1, 4}, {3, 1, 4}, 5, 1, false, false},
                                   {{3, 1, 4}, {2, 5, 1}, 12, 4, false, false},
                                   {{3, 0, 4}, {3, 0, 4}, 34, 2, true, true},
                                   {{2, 3}, {7, 0}, 6, 2, false, true},
                                   {{2}, {0}, 5, 1, false, false},
                                   {{0, 2}, {3, 1}, 33, 1, false, true},
                                   {{1}, {1}, 17, 1, true, false},
                                   {{5, 20}, {5, 20}, 32, 1, true, true},
                                   {{1, 2}, {40, 65}, 4, 2, false, false},
                                   {{70}, {70}, 6, 2, true, true},
                                   {{150, 64, 201}, {150, 64, 201}, 32, 4, true, true},
                                   {{130, 1, 90}, {77, 200, 129}, 48, 3, false, true}};
  for (const Size& s : sizes) {
    if (packing == Packing::kAll && s.queries != s.keys) continue;
    AttentionOptions options;
    options.heads = s.heads;
    options.causal = s.causal;
    if (s.drop) options.dropout = kSomeDropout;
    const Ragged q = Ragged::of_lengths(s.queries), k = Ragged::of_lengths(s.keys);
    const Index D = s.d_model;
    Shapes shapes = {{q.rows(), D}, {k.rows(), D}, {k.rows(), D}};
    if (packing == Packing::kKeyValue) shapes = {{q.rows(), D}, {k.rows(), 2 * D}};
    if (packing == Packing::kAll) shapes = {{q.rows(), 3 * D}};
    row.cases.push_back(random_case(
        std::to_string(s.heads) + (s.causal ? " heads, causal" : " heads") + (s.drop ? ", dropout" : ""), shapes,
        [=](Vars v) {
          if (packing == Packing::kAll) return self_attention(v[0], q, options);
          if (packing == Packing::kKeyValue) return cross_attention(v[0], v[1], q, k, options);
          return attention(v[0], v[1], v[2], q, k, options);
        },
        [=](Vars v) {
          // Operand i of query, key, value: a variable of its own, or columns of a joint one.
          const auto operand = [&](std::size_t i) {
            const std::size_t joint = packing == Packing::kAll ? 0 : 1;
            if (packing == Packing::kApart || i < joint) return v[i];
            const auto begin = static_cast<Index>(i - joint) * D;
            return slice_columns(v[joint], begin, begin + D);
          };
          return attention_reference(operand(0), operand(1), operand(2), q, k, options);
        },
        -2, 2));
  }
  // Rows that do not add up, heads that do not divide d_model, packed widths that are no multiple, other shapes.
  const Ragged q = Ragged::of_lengths({3, 2}), k = Ragged::of_lengths({4, 1});
  AttentionOptions two, causal;
  two.heads = 2;
  causal.causal = true;
  AttentionOptions none;
  none.heads = 0;
  const auto wrong = [&](const Ragged& query_rows, const Ragged& key_rows, Index d_query, Index d_key, Index key_count,
                         const AttentionOptions& options) {
    row.wrong.push_back([=] {
      const Var query = zeros({5, d_query});
      switch (packing) {
        case Packing::kApart:
          attention(query, zeros({key_count, d_key}), zeros({key_count, d_key}), query_rows, key_rows, options);
          break;
        case Packing::kKeyValue:
          cross_attention(query, zeros({key_count, 2 * d_key}), query_rows, key_rows, options);
          break;
        case Packing::kAll:
          self_attention(zeros({key_count, 3 * d_key}), query_rows, options);
      }
    });
  };
  wrong(q, k, 5, 5, 5, two);
  wrong(q, k, 4, 4, 5, none);
  wrong(Ragged::of_lengths({3, 3}), k, 4, 4, 5, two);
  if (packing != Packing::kAll) {
    wrong(q, k, 4, 6, 5, two);
    wrong(q, k, 4, 4, 6, two);
    wrong(q, k, 4, 4, 5, causal);
    wrong(q, Ragged::of_lengths({5}), 4, 4, 5, two);
  }
  if (packing == Packing::kApart) {
    row.wrong.push_back([=] { attention(zeros({5, 4}), zeros({5, 4}), zeros({5, 6}), q, k, two); });
    row.wrong.push_back([=] { attention(zeros({5, 4}), zeros({5, 4}), zeros({6, 4}), q, k, two); });
  }
  if (packing == Packing::kKeyValue) {
    row.wrong.push_back([=] { cross_attention(zeros({5, 4}), zeros({5, 4}), q, k, two); });
  }
  if (packing == Packing::kAll) row.wrong.push_back([=] { self_attention(zeros({5, 4}), q, {}); });
  return row;
}

// ---- norms ----------------------------------------------------------------------------------------------------------

const std::vector<Shapes> kRowShapes = {{{5, 17}}, {{1, 33}}, {{0, 5}}, {{4, 1}}, {{3, 16}}, {{3, 200}}, {{401, 203}}};

OpRow norm_row(std::string_view name, bool residual) {
  OpRow row{name, {}, {}};
  for (const Shapes& shapes : kRowShapes) {
    const Shape x = shapes[0], vector = {x.cols()};
    for (const DropoutMask& d : residual ? std::vector<DropoutMask>{kSomeDropout, {}} : std::vector<DropoutMask>{{}}) {
      // With gains of 0.5 and more, the input is had back from the result; among those from -2 to 2 some are too small.
      for (const double least : {-2.0, 0.5})
        row.cases.push_back(random_case(
            d.probability > 0 ? "dropout" : "", residual ? Shapes{x, x, vector, vector} : Shapes{x, vector, vector},
            [d, residual](Vars v) {
              return residual ? add_norm(v[0], v[1], v[2], v[3], kEpsilon, d) : layer_norm(v[0], v[1], v[2], kEpsilon);
            },
            [d, residual](Vars v) {
              return residual ? layer_norm_reference(add(v[0], dropout(v[1], d)), v[2], v[3])
                              : layer_norm_reference(v[0], v[1], v[2]);
            },
            least, 2));
    }
  }
  const auto norm = [residual](const Shape& x, const Shape& y, const Shape& gain, const Shape& shift) {
    return [=] {
      residual ? add_norm(zeros(x), zeros(y), zeros(gain), zeros(shift), kEpsilon, {})
               : layer_norm(zeros(x), zeros(gain), zeros(shift), kEpsilon);
    };
  };
  row.wrong = {norm({3, 4}, {3, 4}, {3}, {4}), norm({3, 4}, {3, 4}, {4}, {3}), norm({3, 4}, {3, 4}, {1}, {4})};
  if (residual) row.wrong.push_back(norm({3, 4}, {3, 5}, {4}, {4}));
  if (residual) row.wrong.push_back(norm({3, 4}, {2, 4}, {4}, {4}));
  return row;
}

// ---- losses ---------------------------------------------------------------------------------------------------------

OpRow cross_entropy_row() {
  OpRow row{"cross_entropy", {}, {}};
  for (const Shape& shape : {Shape{5, 17}, Shape{1, 33}, Shape{4, 1}, Shape{0, 5}, Shape{3, 200}, Shape{401, 203}}) {
    for (const double smoothing : {0.0, 0.1}) {
      CrossEntropyOptions options;
      options.label_smoothing = static_cast<real>(smoothing);
      options.factor = static_cast<real>(0.25);
      const std::vector<TokenId> targets = random_ids(shape[0], shape[1], 6);
      row.cases.push_back(random_case(
          smoothing > 0 ? "smoothed" : "", {shape}, [=](Vars v) { return cross_entropy(v[0], targets, options); },
          [=](Vars v) { return cross_entropy_reference(v[0], targets, options); }, -3, 3));
    }
  }
  row.wrong = {[] {
                 cross_entropy(zeros({2, 3}), std::vector<TokenId>{0});
               },
               [] {
                 cross_entropy(zeros({2, 3}), std::vector<TokenId>{0, 3});
               },
               [] {
                 cross_entropy(zeros({2, 3}), std::vector<TokenId>{-1, 0});
               }};
  return row;
}

OpRow linear_cross_entropy_row() {
  OpRow row{"linear_cross_entropy", {}, {}};
  struct Size {
    Index rows, in, classes;
  };
  // The last is worked on in three chunks.
  for (const Size& s : {Size{5, 17, 33}, {1, 5, 5}, {3, 8, 200}, {0, 5, 7}, {130, 5, 16400}}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const bool bias : {true, false}) {
        CrossEntropyOptions options;
        options.label_smoothing = static_cast<real>(smoothing);
        options.factor = static_cast<real>(0.25);
        const std::vector<TokenId> targets = random_ids(s.rows, s.classes, 7);
        Shapes shapes = {{s.rows, s.in}, {s.classes, s.in}};
        if (bias) shapes.push_back({s.classes});
        row.cases.push_back(random_case(
            std::string(smoothing > 0 ? "smoothed" : "") + (bias ? " with bias" : ""), shapes,
            [=](Vars v) { return linear_cross_entropy(v[0], v[1], v.size() > 2 ? v[2] : Var(), targets, options); },
            [=](Vars v) { return cross_entropy(linear(v[0], v[1], v.size() > 2 ? v[2] : Var()), targets, options); }));
      }
    }
  }
  row.wrong = {[] {
                 linear_cross_entropy(zeros({2, 4}), zeros({3, 5}), Var(), std::vector<TokenId>{0, 0});
               },
               [] {
                 linear_cross_entropy(zeros({2, 4}), zeros({3, 4}), zeros({4}), std::vector<TokenId>{0, 0});
               },
               [] {
                 linear_cross_entropy(zeros({2, 4}), zeros({3, 4}), Var(), std::vector<TokenId>{0});
               },
               [] {
                 linear_cross_entropy(zeros({2, 4}), zeros({3, 4}), Var(), std::vector<TokenId>{0, 3});
               },
               [] {
                 linear_cross_entropy(zeros({2, 4}), zeros({3, 4}), Var(), std::vector<TokenId>{-1, 0});
               }};
  return row;
}

const std::vector<Shapes> kPairs = {{{5, 17}, {5, 17}}, {{1, 33}, {1, 33}},   {{2, 3, 5}, {2, 3, 5}},
                                    {{7}, {7}},         {{3, 200}, {3, 200}}, {{401, 203}, {401, 203}}};

}  // namespace

std::vector<OpRow> model_rows() {
  return {
      embedding_row(),
      add_positions_row(),
      attention_row("attention", Packing::kApart),
      attention_row("self_attention", Packing::kAll),
      attention_row("cross_attention", Packing::kKeyValue),
      {"softmax",
       random_cases(
           kRowShapes, [](Vars v) { return softmax(v[0]); }, [](Vars v) { return softmax_reference(v[0]); }, -3, 3),
       {}},
      {"log_softmax",
       random_cases(
           kRowShapes, [](Vars v) { return log_softmax(v[0]); }, [](Vars v) { return log(softmax_reference(v[0])); },
           -3, 3),
       {}},
      norm_row("layer_norm", false),
      norm_row("add_norm", true),
      cross_entropy_row(),
      linear_cross_entropy_row(),
      {"mean_squared_error",
       random_cases(
           kPairs, [](Vars v) { return mean_squared_error(v[0], v[1]); },
           [](Vars v) {
             const Var d = sub(v[0], v[1]);
             return mean(mul(d, d));
           }),
       {[] {
          mean_squared_error(zeros({4, 6}), zeros({4, 5}));
        },
        [] {
          mean_squared_error(zeros({4, 6}), zeros({6}));
        }}},
      {"kl_divergence",
       random_cases(
           kPairs, [](Vars v) { return kl_divergence(v[0], v[1]); },
           [](Vars v) {
             const Var terms = mul(v[1], sub(log(v[1]), v[0]));
             return scale(sum(terms), 1 / static_cast<real>(v[0].rows()));
           },
           0.25, 2),
       {[] {
          kl_divergence(zeros({4, 6}), zeros({4, 5}));
        },
        [] {
          kl_divergence(zeros({4, 6}), zeros({6}));
        }}},
  };
}

}  // namespace weft

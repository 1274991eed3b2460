// Properties of attention that hold for any numbers; that the numbers are right is for the op table.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "op_table.h"
#include "weft/core/flops.h"
#include "weft/core/threads.h"

using namespace weft;

namespace {

bool same_rows(const Tensor& a, Index a_begin, const Tensor& b, Index b_begin, Index count) {
  return a.cols() == b.cols() && std::memcmp(a.data() + a_begin * a.cols(), b.data() + b_begin * b.cols(),
                                             static_cast<std::size_t>(count * a.cols()) * sizeof(real)) == 0;
}

bool finite(const Tensor& x) {
  for (const real v : x.values()) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

AttentionOptions options_of(Index heads, bool causal) {
  AttentionOptions options;
  options.heads = heads;
  options.causal = causal;
  return options;
}

}  // namespace

TEST_CASE("with a causal mask a row does not see later ones, without it does") {
  const Ragged rows = Ragged::of_lengths({5, 140});
  for (const bool causal : {true, false}) {
    const Tensor qkv = random_tensor({145, 3 * 12}, 1);
    Tensor changed = qkv.clone();
    const Index first_changed = 5 + 70;
    for (Index i = first_changed * 36; i < changed.size(); ++i) changed.data()[i] += 1;
    const Tensor before = self_attention(qkv, rows, options_of(3, causal)).value();
    const Tensor after = self_attention(changed, rows, options_of(3, causal)).value();
    CHECK(same_rows(before, 0, after, 0, 5));
    CHECK(same_rows(before, 5, after, 5, 70) == causal);
    CHECK_FALSE(same_rows(before, first_changed, after, first_changed, 1));
  }
}

TEST_CASE("a sequence's result and gradients are the same bits whatever it is batched with") {
  const Tensor alone = random_tensor({23, 3 * 10}, 1), other = random_tensor({41, 3 * 10}, 2);
  struct Run {
    Tensor value, gradient;
  };
  const auto run = [](const std::vector<Tensor>& parts) {
    Ragged rows;
    std::vector<Var> vars;
    for (const Tensor& part : parts) {
      rows.append(part.rows());
      vars.emplace_back(part);
    }
    Tape tape;
    const Var x = tape.variable(concat_rows(vars).value());
    const Var y = self_attention(x, rows, options_of(2, true));
    tape.backward(sum(mul(y, y)));
    return Run{y.value(), tape.gradient(x)};
  };
  const std::vector<Tensor> many(60, random_tensor({3, 3 * 10}, 3));  // so that heads share a tile
  std::vector<Tensor> crowd = many;
  crowd.push_back(alone);
  const Run one = run({alone}), last = run({other, alone}), first = run({alone, other, other}), among = run(crowd);
  CHECK(same_rows(one.value, 0, last.value, 41, 23));
  CHECK(same_rows(one.gradient, 0, last.gradient, 41, 23));
  CHECK(same_rows(one.value, 0, first.value, 0, 23));
  CHECK(same_rows(one.gradient, 0, first.gradient, 0, 23));
  CHECK(same_rows(one.value, 0, among.value, 180, 23));
  CHECK(same_rows(one.gradient, 0, among.gradient, 180, 23));
}

TEST_CASE("a query's result and gradient are the same bits whatever queries stand beside it") {
  // Widths of whole vectors and others; numbers of queries around the lengths that vectors and register blocks have.
  for (const Index d_model : {2 * 32, 2 * 7}) {
    const Tensor all = random_tensor({77, 3 * d_model}, 1);
    struct Run {
      Tensor value, gradient;
    };
    const auto self = [&](Index rows) {
      Tape tape;
      const Var qkv = tape.variable(all.row_range(0, rows).clone());
      return self_attention(qkv, Ragged::of_lengths({rows}), options_of(2, true)).value();
    };
    const auto cross = [&](Index begin, Index end) {
      Tape tape;
      const Var q = tape.variable(random_tensor({77, d_model}, 2).row_range(begin, end).clone());
      const Var kv = random_tensor({50, 2 * d_model}, 3);
      const Var y =
          cross_attention(q, kv, Ragged::of_lengths({end - begin}), Ragged::of_lengths({50}), options_of(2, false));
      tape.backward(sum(mul(y, y)));
      return Run{y.value(), tape.gradient(q)};
    };
    const Tensor whole = self(77);
    const Run whole_cross = cross(0, 77);
    for (const Index rows : {1, 5, 12, 13, 16, 17, 31, 32, 33, 65}) {
      CAPTURE(rows);
      CHECK(same_rows(whole, 0, self(rows), 0, rows));
      const Run first = cross(0, rows), last = cross(77 - rows, 77);
      CHECK(same_rows(whole_cross.value, 0, first.value, 0, rows));
      CHECK(same_rows(whole_cross.gradient, 0, first.gradient, 0, rows));
      CHECK(same_rows(whole_cross.value, 77 - rows, last.value, 0, rows));
      CHECK(same_rows(whole_cross.gradient, 77 - rows, last.gradient, 0, rows));
    }
  }
}

TEST_CASE("results and gradients are the same bits for any number of threads, with many short sequences too") {
  std::vector<Index> lengths;
  for (Index i = 0; i < 150; ++i) lengths.push_back(i * 7 % 23);
  const Ragged rows = Ragged::of_lengths(lengths);
  const auto run = [&](int count) {
    set_threads(count);
    Tape tape;
    const Var x = tape.variable(random_tensor({rows.rows(), 3 * 32}, 1));
    const Var y = self_attention(x, rows, options_of(2, true));
    tape.backward(sum(mul(y, y)));
    return std::pair(y.value(), tape.gradient(x));
  };
  const int before = threads();
  const auto one = run(1), four = run(4);
  set_threads(before);
  CHECK(same_rows(one.first, 0, four.first, 0, rows.rows()));
  CHECK(same_rows(one.second, 0, four.second, 0, rows.rows()));
}

TEST_CASE("the arithmetic that is counted is that of keys that are seen, and twice as much for backward") {
  const auto counted = [](const Ragged& queries, const Ragged& keys, bool causal) {
    const Index before = counted_flops();
    Tape tape;
    const Var q = tape.variable(random_tensor({queries.rows(), 12}, 1));
    const Var kv = tape.variable(random_tensor({keys.rows(), 24}, 2));
    const Var y = cross_attention(q, kv, queries, keys, options_of(3, causal));
    const Index forward = counted_flops() - before;
    tape.backward(sum(y));
    CHECK(counted_flops() - before == 3 * forward);
    return forward;
  };
  const Ragged two = Ragged::of_lengths({5, 2});
  CHECK(counted(two, Ragged::of_lengths({3, 4}), false) == 4 * 12 * (5 * 3 + 2 * 4));
  CHECK(counted(two, two, true) == 4 * 12 * (1 + 2 + 3 + 4 + 5 + 1 + 2));
}

TEST_CASE("a query whose sequence has no keys gives zeros and finite gradients") {
  const Ragged queries = Ragged::of_lengths({2, 3}), keys = Ragged::of_lengths({4, 0});
  Tape tape;
  const Var q = tape.variable(random_tensor({5, 6}, 1)), kv = tape.variable(random_tensor({4, 12}, 2));
  const Var y = cross_attention(q, kv, queries, keys, options_of(2, false));
  tape.backward(sum(mul(add(y, number(1)), add(y, number(1)))));
  for (const real v : y.value().row_range(2, 5).values()) CHECK(v == 0);
  for (const real g : tape.gradient(q).row_range(2, 5).values()) CHECK(g == 0);
  CHECK(finite(y.value()));
  CHECK(finite(tape.gradient(q)));
  CHECK(finite(tape.gradient(kv)));
}

TEST_CASE("the weights given out are those used, each query's adding up to 1, and 0 for what a causal mask hides") {
  const Ragged rows = Ragged::of_lengths({3, 0, 70});
  const Tensor qkv = random_tensor({73, 3 * 8}, 1);
  std::vector<Tensor> weights(1);
  AttentionOptions options = options_of(2, true);
  options.weights = &weights;
  const Tensor y = self_attention(qkv, rows, options).value();
  REQUIRE(weights.size() == 3);
  for (Index s = 0; s < 3; ++s) {
    const Index n = rows.length(s);
    const Tensor& w = weights[static_cast<std::size_t>(s)];
    REQUIRE(w.shape() == Shape{2, n, n});
    for (Index h = 0; h < 2; ++h) {
      for (Index i = 0; i < n; ++i) {
        const real* row = w.data() + (h * n + i) * n;
        double total = 0, hidden = 0;
        std::vector<double> expected(4, 0);
        for (Index k = 0; k < n; ++k) {
          total += static_cast<double>(row[k]);
          if (k > i) hidden += std::abs(static_cast<double>(row[k]));
          for (Index d = 0; d < 4; ++d) {
            const real v = qkv.data()[(rows.begin(s) + k) * 24 + 16 + h * 4 + d];
            expected[static_cast<std::size_t>(d)] += static_cast<double>(row[k]) * static_cast<double>(v);
          }
        }
        CHECK(total == doctest::Approx(1).epsilon(1e-5));
        CHECK(hidden == 0);
        for (Index d = 0; d < 4; ++d) {
          const real got = y.data()[(rows.begin(s) + i) * 8 + h * 4 + d];
          CHECK(std::abs(static_cast<double>(got) - expected[static_cast<std::size_t>(d)]) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("attention with huge scores, and softmax of huge logits, stay finite") {
  Tape tape;
  Tensor large = random_tensor({6, 3 * 4}, 1);
  for (real& x : large.values()) x *= 300;  // scores of about 1e4 to 1e5
  const Var x = tape.variable(large);
  const Var y = self_attention(x, Ragged::of_lengths({6}), options_of(1, false));
  tape.backward(sum(y));
  CHECK(finite(y.value()));
  CHECK(finite(tape.gradient(x)));
  const Tensor logits = Tensor::of({2, 3}, {1e4f, -1e4f, 0, -1e4f, -1e4f, -1e4f});
  const Tensor p = softmax(logits).value();
  CHECK(p.values()[0] == 1);
  CHECK(static_cast<double>(p.values()[4]) == doctest::Approx(1. / 3));
  CHECK(finite(log_softmax(logits).value()));
}

// Products of rows, attention and choice while decoding: the numbers, and that a row's result never depends on other rows.
#include "weft/core/gemm_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "op_table.h"
#include "weft/core/gemm.h"
#include "weft/core/kernels.h"
#include "weft/core/threads.h"

using namespace weft;

namespace {

constexpr double kTolerance = sizeof(real) == sizeof(double) ? 1e-12 : 2e-5;

/// y = x W^T in double, x [M, K], W [N, K].
std::vector<double> product(const Tensor& x, const Tensor& W) {
  const Index M = x.rows(), N = W.rows(), K = x.cols();
  std::vector<double> y(static_cast<std::size_t>(M * N));
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) {
      for (Index k = 0; k < K; ++k) {
        y[static_cast<std::size_t>(m * N + n)] +=
            static_cast<double>(x.data()[m * K + k]) * static_cast<double>(W.data()[n * K + k]);
      }
    }
  }
  return y;
}

double worst(const Tensor& a, const std::vector<double>& b) {
  double error = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a.data()[i]) - b[static_cast<std::size_t>(i)]);
    error = std::max(error, std::isfinite(difference) ? difference : 1e9);
  }
  return error;
}

bool same(const real* a, const real* b, Index count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(real)) == 0;
}

/// softmax(q k / sqrt(d)) v of one head, in double; `at` gives the row of key t within `KV`.
template <class At>
std::vector<double> one_head(const real* q, const Tensor& KV, At at, Index keys, Index column, Index d_head) {
  const Index D = KV.cols() / 2;
  std::vector<double> weights, out(static_cast<std::size_t>(d_head));
  double sum = 0;
  for (Index t = 0; t < keys; ++t) {
    double score = 0;
    for (Index d = 0; d < d_head; ++d) {
      score += static_cast<double>(q[d]) * static_cast<double>(KV.data()[at(t) * 2 * D + column + d]);
    }
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d_head))));
    sum += weights.back();
  }
  for (Index t = 0; t < keys; ++t) {
    for (Index d = 0; d < d_head; ++d) {
      out[static_cast<std::size_t>(d)] +=
          weights[static_cast<std::size_t>(t)] / sum * static_cast<double>(KV.data()[at(t) * 2 * D + D + column + d]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("gemm_rows is the product, for any height, width and depth, and any strides") {
  for (const Index K : {0, 1, 7, 16, 17, 40, 1024, 1029, 2100}) {
    for (const Index N : {1, 3, 4, 9}) {
      for (const Index M : {1, 2, 3, 4, 5, 6, 7, 11, 13, 18}) {
        CAPTURE(K);
        CAPTURE(N);
        CAPTURE(M);
        const Tensor x = random_tensor({M, K}, 1), W = random_tensor({N, K}, 2);
        Tensor y = Tensor::full({M, N}, 99);
        gemm_rows(M, N, K, x.data(), K, W.data(), K, y.data(), N);
        REQUIRE(worst(y, product(x, W)) <= kTolerance * static_cast<double>(K + 1));
        // The same within larger matrices, whose other elements are left alone.
        Tensor wide_x = Tensor::full({M, K + 3}, 1e9), wide_W = Tensor::full({N, K + 5}, 1e9);
        Tensor wide_y = Tensor::full({M, N + 2}, 7);
        copy_block(M, K, x.data(), K, {wide_x.data(), 0}, K + 3);
        copy_block(N, K, W.data(), K, {wide_W.data(), 0}, K + 5);
        gemm_rows(M, N, K, wide_x.data(), K + 3, wide_W.data(), K + 5, wide_y.data(), N + 2);
        for (Index m = 0; m < M; ++m) {
          REQUIRE(same(wide_y.data() + m * (N + 2), y.data() + m * N, N));
          REQUIRE(wide_y.data()[m * (N + 2) + N] == 7);
        }
      }
    }
  }
}

TEST_CASE("a row of x W^T has the same bits whatever the other rows are, for any number of threads") {
  if (!kRowsAreFast) return;
  struct Shape {
    Index N, K;
  };
  for (const Shape& s : {Shape{70, 40}, {130, 300}, {1100, 33}, {33, 1300}, {4, 5}}) {
    const Tensor x = random_tensor({530, s.K}, 3), W = random_tensor({s.N, s.K}, 4), b = random_tensor({s.N}, 5);
    Tensor all({530, s.N});
    set_threads(1);
    linear(530, s.N, s.K, x.data(), W.data(), b.data(), Activation::kGelu, all.data(), nullptr, false);
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      for (const Index M : {1, 2, 5, 7, 8, 31, 513}) {
        for (const Index begin : {0, 1, 17}) {
          Tensor some({M, s.N});
          linear(M, s.N, s.K, x.data() + begin * s.K, W.data(), b.data(), Activation::kGelu, some.data(), nullptr,
                 false);
          CHECK(same(some.data(), all.data() + begin * s.N, M * s.N));
        }
      }
    }
    set_threads(1);
  }
}

TEST_CASE("attention to memory: the numbers, no keys, and rows by themselves") {
  const std::vector<Index> query_offsets{0, 1, 1, 5, 7}, key_offsets{0, 6, 9, 22, 22};
  for (const Index d_head : {3, 16, 24, 64, 80}) {
    const Index heads = 3, D = heads * d_head;
    const Tensor Q = random_tensor({7, D}, 1), KV = random_tensor({22, 2 * D}, 2);
    Tensor O({7, D});
    memory_attention({Q.data(), KV.data(), query_offsets, key_offsets, heads, d_head}, O.data());
    for (std::size_t s = 0; s < 4; ++s) {
      const Index first = key_offsets[s], keys = key_offsets[s + 1] - first;
      for (Index row = query_offsets[s]; row < query_offsets[s + 1]; ++row) {
        for (Index h = 0; h < heads; ++h) {
          const Index at = row * D + h * d_head;
          const auto expected = one_head(
              Q.data() + at, KV, [&](Index t) { return first + t; }, keys, h * d_head, d_head);
          CHECK(worst(O.row_range(row, row + 1).reshaped({D}).view(h * d_head, {d_head}), expected) <= kTolerance);
        }
        Tensor alone({1, D});
        const std::vector<Index> one{0, 1}, own_keys{0, keys};
        memory_attention({Q.data() + row * D, KV.data() + first * 2 * D, one, own_keys, heads, d_head}, alone.data());
        CHECK(same(alone.data(), O.data() + row * D, D));
      }
    }
  }
}

TEST_CASE("attention to the past: the numbers, and rows by themselves") {
  for (const Index d_head : {5, 16, 64}) {
    for (const Index steps : {1, 3, 4, 9}) {
      const Index heads = 2, D = heads * d_head, rows = 5;
      const Tensor Q = random_tensor({rows, 3 * D}, 1), KV = random_tensor({steps * rows, 2 * D}, 2);
      std::vector<const real*> past;
      std::vector<Index> ancestors;
      for (Index t = 0; t < steps; ++t) past.push_back(KV.data() + t * rows * 2 * D);
      for (Index i = 0; i < rows * steps; ++i) ancestors.push_back(i * 7 % rows);
      Tensor O({rows, D});
      cached_attention(rows, {Q.data(), 3 * D, past, ancestors, heads, d_head}, O.data());
      for (Index row = 0; row < rows; ++row) {
        for (Index h = 0; h < heads; ++h) {
          const auto at = [&](Index t) { return t * rows + ancestors[static_cast<std::size_t>(row * steps + t)]; };
          const auto expected = one_head(Q.data() + row * 3 * D + h * d_head, KV, at, steps, h * d_head, d_head);
          CHECK(worst(O.row_range(row, row + 1).reshaped({D}).view(h * d_head, {d_head}), expected) <= kTolerance);
        }
        Tensor alone({1, D});
        cached_attention(
            1,
            {Q.data() + row * 3 * D, 3 * D, past,
             std::span(ancestors).subspan(static_cast<std::size_t>(row * steps), static_cast<std::size_t>(steps)),
             heads, d_head},
            alone.data());
        CHECK(same(alone.data(), O.data() + row * D, D));
      }
    }
  }
}

TEST_CASE("best_columns finds what sorting finds, and the logarithm of the sum") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  for (const Index V : {1, 5, 64, 65, 200, 1000}) {
    Tensor x = random_tensor({9, V}, static_cast<unsigned>(V));
    for (Index v = 0; v < V; ++v) {
      x.data()[v] = static_cast<real>(v % 3);       // row 0: ties
      x.data()[V + v] = static_cast<real>(v) / 20;  // row 1: rising
      x.data()[2 * V + v] = static_cast<real>(-v) / 20;
    }
    for (const Index first : {Index{0}, std::min<Index>(V, 3)}) {
      for (const Index count : {1, 4, 70}) {
        CAPTURE(V);
        CAPTURE(first);
        CAPTURE(count);
        std::vector<TokenId> columns(static_cast<std::size_t>(9 * count), 77);
        std::vector<real> log_sum(9);
        best_columns(9, V, x.data(), first, count, columns.data(), log_sum.data());
        for (Index t = 0; t < 9; ++t) {
          const real* row = x.data() + t * V;
          std::vector<TokenId> order;
          for (Index v = first; v < V; ++v) order.push_back(static_cast<TokenId>(v));
          std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return row[a] > row[b]; });
          order.resize(static_cast<std::size_t>(count), -1);
          CHECK(std::equal(order.begin(), order.end(), columns.begin() + t * count));
          double sum = 0;
          for (Index v = 0; v < V; ++v) sum += std::exp(static_cast<double>(row[v]));
          CHECK(static_cast<double>(log_sum[static_cast<std::size_t>(t)]) ==
                doctest::Approx(std::log(sum)).epsilon(1e-5));
        }
      }
    }
  }
  const Tensor some = Tensor::of({1, 5}, {nan, 1, nan, 3, 2});
  std::vector<TokenId> columns(4);
  real log_sum = 0;
  best_columns(1, 5, some.data(), 0, 4, columns.data(), &log_sum);
  CHECK(columns == std::vector<TokenId>{3, 4, 1, -1});
}

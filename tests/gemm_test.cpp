// Matrix products against the plain sum in double: every layout, edges of panels and blocks, epilogues; the same bits for
// any number of threads, and, with Weft's own product, for a row whatever the other rows are.
#include "weft/core/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "weft/core/flops.h"
#include "weft/core/random.h"

using namespace weft;

namespace {

std::vector<real> random_values(Index size, std::uint64_t seed) {
  Random random(seed);
  std::vector<real> values(static_cast<std::size_t>(size));
  for (real& value : values) value = static_cast<real>(2 * random.uniform() - 1);
  return values;
}

/// Element (row, column) of an operand.
double at(const Matrix& m, Index row, Index column) {
  return static_cast<double>(m.transposed ? m.data[column * m.stride + row] : m.data[row * m.stride + column]);
}

double plain_product(const Matrix& A, const Matrix& B, Index row, Index column, Index K) {
  double sum = 0;
  for (Index k = 0; k < K; ++k) sum += at(A, row, k) * at(B, k, column);
  return sum;
}

struct Case {
  Index M, N, K;
};

// Below, at and above the lengths at which panels (14 rows, 32 columns), blocks of K (384), tiles and sums of parts begin.
const std::vector<Case> kCases = {{1, 1, 1},     {1, 33, 5},     {13, 32, 16},     {14, 31, 17},
                                  {15, 64, 383}, {28, 65, 384},  {29, 96, 385},    {100, 40, 800},
                                  {257, 12, 33}, {300, 130, 70}, {40, 24, 900},    {7, 200, 0},
                                  {0, 3, 4},     {40, 24, 1030}, {290, 270, 1025}, {500, 40, 2100}};

constexpr double kTolerance = sizeof(real) == 4 ? 2e-4 : 1e-12;

bool same(const std::vector<real>& a, const std::vector<real>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(real)) == 0);
}

}  // namespace

TEST_CASE("products of all layouts") {
  for (const Case& c : kCases) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        CAPTURE(c.M);
        CAPTURE(c.N);
        CAPTURE(c.K);
        CAPTURE(transpose_a);
        CAPTURE(transpose_b);
        // Rows of A lie 1024 elements apart in one case, which the product treats apart.
        const Index a_stride = transpose_a  ? c.M + 3
                               : c.K == 800 ? 1024
                                            : c.K + 1,
                    b_stride = (transpose_b ? c.K : c.N) + 2;
        const std::vector<real> a = random_values((transpose_a ? c.K : c.M) * a_stride, 1),
                                b = random_values((transpose_b ? c.N : c.K) * b_stride, 2);
        const Matrix A{a.data(), a_stride, transpose_a}, B{b.data(), b_stride, transpose_b};
        std::vector<double> products;
        for (Index row = 0; row < c.M; ++row) {
          for (Index column = 0; column < c.N; ++column) products.push_back(plain_product(A, B, row, column, c.K));
        }
        for (const real beta : {real{0}, real{1}, real{-0.5}}) {
          const Index stride = c.N + 5;
          const std::vector<real> before = random_values(c.M * stride, 3);
          std::vector<real> result = before, serial = before;
          gemm(c.M, c.N, c.K, A, B, beta, result.data(), stride);
          gemm_serial(c.M, c.N, c.K, real{0.5}, A, B, beta, serial.data(), stride);
          double worst = 0;
          for (Index row = 0; row < c.M; ++row) {
            for (Index column = 0; column < stride; ++column) {
              const auto i = static_cast<std::size_t>(row * stride + column);
              const auto old = static_cast<double>(before[i]);
              double wanted = old, wanted_serial = old;  // what lies between the rows stays
              if (column < c.N) {
                const double product = products[static_cast<std::size_t>(row * c.N + column)];
                wanted = product + static_cast<double>(beta) * old;
                wanted_serial = 0.5 * product + static_cast<double>(beta) * old;
              }
              worst = std::max({worst, std::abs(static_cast<double>(result[i]) - wanted),
                                std::abs(static_cast<double>(serial[i]) - wanted_serial)});
            }
          }
          CHECK(worst < kTolerance);
        }
      }
    }
  }
}

TEST_CASE("sums of few rows and columns over a long K, added to what is there") {
  const Index M = 30, N = 40, K = 2500;
  const std::vector<real> a = random_values(K * M, 1), b = random_values(K * N, 2), before = random_values(M * N, 3);
  const Matrix A{a.data(), M, true}, B{b.data(), N};
  for (const real beta : {real{0}, real{1}}) {
    std::vector<real> result = before;
    gemm(M, N, K, A, B, beta, result.data(), N);
    double worst = 0;
    for (Index i = 0; i < M * N; ++i) {
      const auto old = static_cast<double>(before[static_cast<std::size_t>(i)]);
      const double wanted = plain_product(A, B, i / N, i % N, K) + static_cast<double>(beta) * old;
      worst = std::max(worst, std::abs(static_cast<double>(result[static_cast<std::size_t>(i)]) - wanted));
    }
    CHECK(worst < kTolerance);
  }
}

TEST_CASE("epilogues: bias, relu that lets NaN through, and a call for each tile") {
  const Index M = 130, N = 75, K = 400;
  const std::vector<real> b = random_values(N * K, 2), bias = random_values(N, 3);
  std::vector<real> a = random_values(M * K, 1);
  a[0] = std::nan("");
  const Matrix A{a.data(), K}, B{b.data(), K, true};
  std::vector<real> plain(static_cast<std::size_t>(M * N)), result = plain;
  gemm(M, N, K, A, B, 0, plain.data(), N);
  std::vector<std::uint8_t> seen(plain.size());
  const auto note = [&](const Tile& tile) {
    for (Index row = tile.row_begin; row < tile.row_end; ++row) {
      for (Index column = tile.column_begin; column < tile.column_end; ++column) {
        ++seen[static_cast<std::size_t>(row * N + column)];
      }
    }
  };
  const FunctionRef<void(const Tile&)> finish = note;
  gemm(M, N, K, A, B, 0, result.data(), N, {bias.data(), true, &finish});
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  for (Index i = 0; i < M * N; ++i) {
    const auto at_i = static_cast<std::size_t>(i);
    const real sum = plain[at_i] + bias[static_cast<std::size_t>(i % N)];
    if (i < N) {
      CHECK(std::isnan(result[at_i]));
    } else {
      CHECK(result[at_i] == std::max(sum, real{0}));
    }
  }
}

TEST_CASE("the same bits for any number of threads") {
  for (const Case& c : {Case{300, 500, 400}, {64, 48, 3000}, {20, 2000, 128}, {1000, 10, 10}}) {
    const std::vector<real> a = random_values(c.M * c.K, 1), b = random_values(c.K * c.N, 2);
    for (const bool transposed : {false, true}) {
      const Matrix A{a.data(), transposed ? c.M : c.K, transposed}, B{b.data(), c.N};
      std::vector<real> one(static_cast<std::size_t>(c.M * c.N)), more = one;
      set_threads(1);
      gemm(c.M, c.N, c.K, A, B, 0, one.data(), c.N);
      for (const int count : {2, 3, 5}) {
        set_threads(count);
        gemm(c.M, c.N, c.K, A, B, 0, more.data(), c.N);
        CHECK(same(one, more));
      }
      set_threads(1);
    }
  }
}

#ifdef WEFT_VECTOR_GEMM
TEST_CASE("an element has the same bits whatever rows and columns are computed with it") {
  const Index M = 200, N = 150, K = 500;
  const std::vector<real> a = random_values(M * K, 1), b = random_values(N * K, 2);
  std::vector<real> all(static_cast<std::size_t>(M * N));
  gemm(M, N, K, {a.data(), K}, {b.data(), K, true}, 0, all.data(), N);
  for (const Index rows : {1, 2, 15, 100}) {
    const Index first_row = 37, first_column = 5, columns = 101;
    std::vector<real> some(static_cast<std::size_t>(rows * columns));
    gemm(rows, columns, K, {a.data() + first_row * K, K}, {b.data() + first_column * K, K, true}, 0, some.data(),
         columns);
    bool equal = true;
    for (Index i = 0; i < rows * columns; ++i) {
      equal &= some[static_cast<std::size_t>(i)] ==
               all[static_cast<std::size_t>((first_row + i / columns) * N + first_column + i % columns)];
    }
    CHECK(equal);
  }
}
#endif

TEST_CASE("products are counted") {
  const std::vector<real> a = random_values(60, 1), b = random_values(60, 2);
  std::vector<real> c(36);
  const Index before = counted_flops();
  gemm(6, 6, 10, {a.data(), 10}, {b.data(), 6}, 0, c.data(), 6);
  CHECK(counted_flops() - before == 2 * 6 * 6 * 10);
}

// Products of matrices that stay in the nearest caches, straight from where they lie: no copies are made, and only rows
// that are there are multiplied. A block of C is held in registers over all of k, so an element of C is the sum over k in
// order, whatever its place; it depends on its row of A and its column of B only. For kernel files only.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/core/simd.h"

namespace weft {

/// A step through memory that the compiler knows; where it does not, an Index serves.
template <Index kValue>
using Fixed = std::integral_constant<Index, kValue>;

/// The left matrix: element (i, k) at data[i * row + k * step].
template <class Row, class Step>
struct LeftMatrix {
  const real* data;
  Row row;
  Step step;
};

/// The right matrix: element (k, j) at data[k * stride + j]. Rows must be readable up to a multiple of kLanes columns.
struct RightMatrix {
  const real* data;
  Index stride;
};

/// C = A B + beta C, of which `columns` columns are there; C is not read when beta is 0.
struct ProductTarget {
  real* data;
  Index stride, columns;
  real beta;
};

namespace small_product_detail {

// Sums stay in registers only if their type is one that the CPU has. Rows of C at a time, with two simd::Vec of columns:
// 24 of 32 registers; of AVX's 16 registers 12, of SSE's 8.
#if defined(__AVX512F__)
constexpr Index kRegisterBytes = 64, kRows = 12;
#elif defined(__AVX__)
constexpr Index kRegisterBytes = 32, kRows = 3;
#elif defined(__aarch64__)
constexpr Index kRegisterBytes = 16, kRows = 3;
#else
constexpr Index kRegisterBytes = 16, kRows = 1;
#endif
using Register = real __attribute__((vector_size(kRegisterBytes)));
constexpr Index kRegisterLanes = kRegisterBytes / static_cast<Index>(sizeof(real));

inline Register load(const real* p) {
  Register r;
  std::memcpy(&r, p, sizeof r);
  return r;
}
inline void store(real* p, Register r) { std::memcpy(p, &r, sizeof r); }

template <Index kCount, Index kVectors, class Row, class Step>
void multiply(Index depth, const LeftMatrix<Row, Step>& A, const RightMatrix& B, const ProductTarget& C) {
  constexpr Index kColumns = kVectors * simd::kLanes, kRegisters = kColumns / kRegisterLanes;
  Register sums[kCount][kRegisters];
#pragma GCC unroll 12
  for (Index i = 0; i < kCount; ++i) {
#pragma GCC unroll 8
    for (Index j = 0; j < kRegisters; ++j) sums[i][j] = Register{};
  }
  const real* a = A.data;
  const real* b = B.data;
  for (Index k = 0; k < depth; ++k) {
    Register row[kRegisters];
#pragma GCC unroll 8
    for (Index j = 0; j < kRegisters; ++j) row[j] = load(b + j * kRegisterLanes);
#pragma GCC unroll 12
    for (Index i = 0; i < kCount; ++i) {
      const real one = a[i * A.row];
#pragma GCC unroll 8
      for (Index j = 0; j < kRegisters; ++j) sums[i][j] += one * row[j];
    }
    a += A.step;
    b += B.stride;
  }
  // Unfinished vectors go through a copy.
  const bool whole = C.columns >= kColumns;
  alignas(64) real edge[kCount * kColumns];
  real* const out = whole ? C.data : edge;
  const Index stride = whole ? C.stride : kColumns;
  for (Index i = 0; i < kCount && !whole && C.beta != 0; ++i) {
    std::copy_n(C.data + i * C.stride, C.columns, edge + i * stride);
  }
#pragma GCC unroll 12
  for (Index i = 0; i < kCount; ++i) {
#pragma GCC unroll 8
    for (Index j = 0; j < kRegisters; ++j) {
      real* const c = out + i * stride + j * kRegisterLanes;
      store(c, C.beta == 0 ? sums[i][j] : sums[i][j] + C.beta * load(c));
    }
  }
  for (Index i = 0; i < kCount && !whole; ++i) std::copy_n(edge + i * stride, C.columns, C.data + i * C.stride);
}

template <Index kVectors, class Row, class Step, std::size_t... kLess>
void multiply_rows(Index rows, Index depth, const LeftMatrix<Row, Step>& A, const RightMatrix& B,
                   const ProductTarget& C, std::index_sequence<kLess...>) {
  using Multiply = void (*)(Index, const LeftMatrix<Row, Step>&, const RightMatrix&, const ProductTarget&);
  static constexpr Multiply kMultiply[] = {multiply<static_cast<Index>(kLess) + 1, kVectors, Row, Step>...};
  kMultiply[rows - 1](depth, A, B, C);
}

}  // namespace small_product_detail

/// What of k the rows [first, first + count) of A need: [begin, end); the rest of their elements is 0 or not there.
struct DepthRange {
  Index begin, end;
};

/// C = A B + beta C for `rows` rows; `range(first, count)` says which k to go through for some of them.
template <class Row, class Step, class Range>
void small_product(Index rows, const LeftMatrix<Row, Step>& A, const RightMatrix& B, const ProductTarget& C,
                   Range range) {
  using simd::kLanes;
  using namespace small_product_detail;
  if (rows == 0) return;
  const Index groups = (rows + kRows - 1) / kRows, size = (rows + groups - 1) / groups;  // about equal ones
  for (Index column = 0; column < C.columns; column += 2 * kLanes) {
    for (Index i = 0; i < rows; i += size) {
      const Index count = std::min(size, rows - i);
      const DepthRange k = range(i, count);
      const LeftMatrix<Row, Step> a{A.data + i * A.row + k.begin * A.step, A.row, A.step};
      const RightMatrix b{B.data + k.begin * B.stride + column, B.stride};
      const ProductTarget c{C.data + i * C.stride + column, C.stride, C.columns - column, C.beta};
      const auto depth = std::max<Index>(0, k.end - k.begin);
      constexpr auto kAll = std::make_index_sequence<kRows>();
      if (c.columns > kLanes) {
        multiply_rows<2>(count, depth, a, b, c, kAll);
      } else {
        multiply_rows<1>(count, depth, a, b, c, kAll);
      }
    }
  }
}

}  // namespace weft

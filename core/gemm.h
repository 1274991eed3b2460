// Matrix products, on several threads: tiles whose bounds depend on the shapes alone, so that the bits are the same for any
// number of threads. Two implementations stand behind this header. On CPUs with AVX-512 it is Weft's own (gemm_vector.cpp),
// in which an element of a product is also the same bits whatever other rows and columns are computed with it; elsewhere,
// and on demand (WEFT_BLAS), it is OpenBLAS (gemm_blas.cpp).
#pragma once

#include "weft/core/threads.h"
#include "weft/core/types.h"

#if defined(__AVX512F__) && !defined(WEFT_BLAS)
#define WEFT_VECTOR_GEMM 1
#endif

namespace weft {

/// A matrix operand in memory: row r of the stored matrix begins at data + r * stride. With `transposed`, the operand
/// is the transpose of what is stored.
struct Matrix {
  const real* data;
  Index stride;
  bool transposed = false;
};

/// The part of an operand that begins at (row, column).
inline Matrix part(const Matrix& m, Index row, Index column) {
  return {m.data + (m.transposed ? column * m.stride + row : row * m.stride + column), m.stride, m.transposed};
}

/// Part of a result: rows [row_begin, row_end), columns [column_begin, column_end).
struct Tile {
  Index row_begin, row_end, column_begin, column_end;
};

/// What is done to a product before it leaves the CPU's registers or caches.
struct Epilogue {
  const real* bias = nullptr;                              ///< added to each row, [N]
  bool relu = false;                                       ///< then negative elements become 0; NaN stays
  const FunctionRef<void(const Tile&)>* finish = nullptr;  ///< then called once for each tile of the result
};

/// Does to a tile of C what an epilogue says. For implementations.
void apply_epilogue(const Epilogue& epilogue, const Tile& tile, real* C, Index stride);

/// The right operand B [K, N] of products, laid out for them once. Keeps no copy where the implementation needs none: the
/// matrix must outlive it.
class PackedMatrix {
 public:
  PackedMatrix(Index K, Index N, const Matrix& B);
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;
  ~PackedMatrix();

  Index rows() const { return K_; }
  Index columns() const { return N_; }
  const Matrix& matrix() const { return matrix_; }
  const real* panels() const { return panels_; }

 private:
  Index K_, N_;
  Matrix matrix_;
  real* panels_ = nullptr;
};

/// C = A B + beta * C for A [M, K], B [K, N] and C [M, N] stored with row stride `stride`; C is not read when beta is 0.
void gemm(Index M, const Matrix& A, const PackedMatrix& B, real beta, real* C, Index stride,
          const Epilogue& epilogue = {});
void gemm(Index M, Index N, Index K, const Matrix& A, const Matrix& B, real beta, real* C, Index stride,
          const Epilogue& epilogue = {});

/// C = alpha * A B + beta * C in the calling thread alone.
void gemm_serial(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C,
                 Index stride);

}  // namespace weft

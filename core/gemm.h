// Matrix products. The one place that calls BLAS, and the one policy for threads: BLAS always runs with one thread,
// called from our own loop over tiles whose bounds depend on the shapes alone.
#pragma once

#include "weft/core/threads.h"
#include "weft/core/types.h"

namespace weft {

/// A matrix operand in memory: row r of the stored matrix begins at data + r * stride. With `transposed`, the operand
/// is the transpose of what is stored.
struct Matrix {
  const real* data;
  Index stride;
  bool transposed = false;
};

/// Part of a result: rows [row_begin, row_end), columns [column_begin, column_end).
struct Tile {
  Index row_begin, row_end, column_begin, column_end;
};

/// C = alpha * A B + beta * C for A [M, K], B [K, N] and C [M, N] stored with row stride `stride`; C is not read when
/// beta is 0. Runs on several threads; `finish`, where given, is called once for each tile of C as soon as it is there.
/// A B^T, with alpha 1 and beta 0, is computed by gemm_rows where kRowsAreFast: then a row of C depends on its own row of
/// A alone, to the last bit.
void gemm(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C, Index stride);
void gemm(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C, Index stride,
          FunctionRef<void(const Tile&)> finish);

/// The same in the calling thread alone, as one tile.
void gemm_serial(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C,
                 Index stride);

}  // namespace weft

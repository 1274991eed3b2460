// The product of rows with the rows of a weight matrix. A result depends on its own two rows and on nothing else: not on
// how many rows there are, not on the place among them, not on the tile.
#pragma once

#include "weft/core/gemm.h"

namespace weft {

/// Whether gemm_rows is written for the CPU that the library is built for, and so as fast as BLAS (for fewer than some
/// 1000 rows much faster, as it does not pack W).
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
constexpr bool kRowsAreFast = true;
#else
constexpr bool kRowsAreFast = false;
#endif

/// y[m, n] = sum over k of x[m, k] W[n, k], for M rows of x and N rows of W, in the calling thread. Rows begin every
/// x_stride, w_stride and y_stride elements.
void gemm_rows(Index M, Index N, Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y,
               Index y_stride);

/// The same on several threads, with an epilogue.
void gemm_rows_tiled(Index M, Index N, Index K, const real* x, const real* W, real* y, const Epilogue& epilogue = {});

}  // namespace weft

// The product of rows with the rows of a weight matrix, made for few rows. A result depends on its own row and on nothing
// else: not on how many rows there are, not on the place among them, not on the tile.
#pragma once

#include "weft/core/types.h"

namespace weft {

/// y[m, n] = sum over k of x[m, k] W[n, k], for M rows of x and N rows of W, in the calling thread. Rows begin every
/// x_stride, w_stride and y_stride elements. Reads W once for each six rows of x, without packing it.
void gemm_rows(Index M, Index N, Index K, const real* x, Index x_stride, const real* W, Index w_stride, real* y,
               Index y_stride);

}  // namespace weft

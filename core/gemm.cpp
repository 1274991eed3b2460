#include "weft/core/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <mutex>

#include "weft/core/gemm_rows.h"

namespace weft {
namespace {

[[maybe_unused]] void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int M, int N, int K, float alpha,
                                const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}

[[maybe_unused]] void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int M, int N, int K, double alpha,
                                const double* A, int lda, const double* B, int ldb, double beta, double* C, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
}

/// Tells OpenBLAS to compute in the calling thread alone. In its OpenMP build this is a property of each thread.
bool set_one_thread() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  openblas_set_num_threads(1);
  return true;
}

const real* part(const Matrix& m, Index row, Index column) {
  return m.transposed ? m.data + column * m.stride + row : m.data + row * m.stride + column;
}

/// The length of a tile along a side of `length`: about an eighth, in multiples of 32, from 64 to 512.
Index tile_length(Index length) { return std::clamp<Index>((length + 7) / 8 / 32 * 32, 64, 512); }

/// C = A B^T by gemm_rows, which gives a row of C the same bits whatever the other rows are.
void gemm_by_rows(Index M, Index N, Index K, const Matrix& A, const Matrix& B, real* C, Index stride,
                  const FunctionRef<void(const Tile&)>* finish) {
  // A tile takes some microseconds at least. With few rows it is reading B that takes the time, else the arithmetic, and
  // then the tile's part of B stays in the second-level cache.
  const bool few = M < 8, small = M * N * K <= 32768;
  const Index rows = 512;
  const Index columns = small ? std::max<Index>(N, 1)
                        : few ? std::clamp<Index>(32768 / K / 16 * 16, 16, 2048)
                              : (N < 1024 && M <= rows ? 64 : 128);
  const Index across = (N + columns - 1) / columns, down = (M + rows - 1) / rows;
  parallel_for(across * down, 1, [&](Index index, Index) {
    const Index row = index / across * rows, column = index % across * columns;
    const Tile t{row, std::min(row + rows, M), column, std::min(column + columns, N)};
    gemm_rows(t.row_end - row, t.column_end - column, K, A.data + row * A.stride, A.stride, B.data + column * B.stride,
              B.stride, C + row * stride + column, stride);
    if (finish != nullptr) (*finish)(t);
  });
}

void gemm_tiled(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C,
                Index stride, const FunctionRef<void(const Tile&)>* finish) {
  if (kRowsAreFast && !A.transposed && B.transposed && alpha == 1 && beta == 0) {
    return gemm_by_rows(M, N, K, A, B, C, stride, finish);
  }
  constexpr Index kSmall = 64 * 64 * 64;  // below this a second thread costs more than it brings
  const bool by_rows = M >= N || M >= 256;
  const Index length = by_rows ? M : N;
  const Index tile = M * N * K <= kSmall ? std::max<Index>(length, 1) : tile_length(length);
  parallel_for(length, tile, [&](Index begin, Index end) {
    const Tile t = by_rows ? Tile{begin, end, 0, N} : Tile{0, M, begin, end};
    gemm_serial(t.row_end - t.row_begin, t.column_end - t.column_begin, K, alpha,
                {part(A, t.row_begin, 0), A.stride, A.transposed}, {part(B, 0, t.column_begin), B.stride, B.transposed},
                beta, C + t.row_begin * stride + t.column_begin, stride);
    if (finish != nullptr) (*finish)(t);
  });
}

}  // namespace

void gemm_serial(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C,
                 Index stride) {
  thread_local const bool one_thread = set_one_thread();
  static_cast<void>(one_thread);
  if (M == 0 || N == 0) return;
  if (K == 0) {  // BLAS may leave C as it is then
    for (Index r = 0; r < M; ++r) {
      for (Index c = 0; c < N; ++c) C[r * stride + c] = beta == 0 ? 0 : beta * C[r * stride + c];
    }
    return;
  }
  blas_gemm(A.transposed ? CblasTrans : CblasNoTrans, B.transposed ? CblasTrans : CblasNoTrans, static_cast<int>(M),
            static_cast<int>(N), static_cast<int>(K), alpha, A.data, static_cast<int>(A.stride), B.data,
            static_cast<int>(B.stride), beta, C, static_cast<int>(stride));
}

void gemm(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C, Index stride) {
  gemm_tiled(M, N, K, alpha, A, B, beta, C, stride, nullptr);
}

void gemm(Index M, Index N, Index K, real alpha, const Matrix& A, const Matrix& B, real beta, real* C, Index stride,
          FunctionRef<void(const Tile&)> finish) {
  gemm_tiled(M, N, K, alpha, A, B, beta, C, stride, &finish);
}

}  // namespace weft

// Matrix products by OpenBLAS, which runs with one thread in each of our tiles: its own threading changes the last bits.
#include "weft/core/gemm.h"

#ifndef WEFT_VECTOR_GEMM

#include <cblas.h>

#include <algorithm>
#include <mutex>

#include "weft/core/flops.h"

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

/// The length of a tile along a side of `length`: about an eighth, in multiples of 32, from 64 to 512.
Index tile_length(Index length) { return std::clamp<Index>((length + 7) / 8 / 32 * 32, 64, 512); }

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

PackedMatrix::PackedMatrix(Index K, Index N, const Matrix& B) : K_(K), N_(N), matrix_(B) {}
PackedMatrix::~PackedMatrix() = default;

void gemm(Index M, Index N, Index K, const Matrix& A, const Matrix& B, real beta, real* C, Index stride,
          const Epilogue& epilogue) {
  constexpr Index kSmall = 64 * 64 * 64;  // below this a second thread costs more than it brings
  const bool by_rows = M >= N || M >= 256;
  const Index length = by_rows ? M : N;
  count_flops(2 * M * N * K);
  const Index tile = M * N * K <= kSmall ? std::max<Index>(length, 1) : tile_length(length);
  parallel_for(length, tile, [&](Index begin, Index end) {
    const Tile t = by_rows ? Tile{begin, end, 0, N} : Tile{0, M, begin, end};
    gemm_serial(t.row_end - t.row_begin, t.column_end - t.column_begin, K, 1, part(A, t.row_begin, 0),
                part(B, 0, t.column_begin), beta, C + t.row_begin * stride + t.column_begin, stride);
    apply_epilogue(epilogue, t, C, stride);
  });
}

void gemm(Index M, const Matrix& A, const PackedMatrix& B, real beta, real* C, Index stride, const Epilogue& epilogue) {
  gemm(M, B.columns(), B.rows(), A, B.matrix(), beta, C, stride, epilogue);
}

}  // namespace weft

#endif

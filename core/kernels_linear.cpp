// Linear maps with their bias and activation, applied to each tile of the product while it is in the cache.
#include <algorithm>

#include "weft/core/column_sums.h"
#include "weft/core/gemm_rows.h"
#include "weft/core/kernels.h"

namespace weft {
namespace {

Unary function_of(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return Unary::kGelu;
    case Activation::kSilu:
      return Unary::kSilu;
    default:
      return Unary::kRelu;
  }
}

}  // namespace

void linear(Index T, Index N, Index K, const real* x, const real* W, const real* b, Activation activation, real* y,
            real* before, bool many_rows) {
  // With `before`, the product goes there and only the activation's result to y.
  real* product = before != nullptr ? before : y;
  Epilogue epilogue{b, activation == Activation::kRelu, nullptr};
  const auto activate = [&](const Tile& tile) {
    const Index width = tile.column_end - tile.column_begin;
    for (Index r = tile.row_begin; r < tile.row_end; ++r) {
      const Index start = r * N + tile.column_begin;
      unary(function_of(activation), width, product + start, y + start);
    }
  };
  const FunctionRef<void(const Tile&)> finish = activate;
  if (activation == Activation::kGelu || activation == Activation::kSilu) epilogue.finish = &finish;
  if (many_rows || !kRowsAreFast) {
    gemm(T, N, K, {x, K}, {W, K, true}, 0, product, N, epilogue);
  } else {
    gemm_rows_tiled(T, N, K, x, W, product, epilogue);
  }
}

void activation_backward(Activation activation, Index T, Index N, const real* kept, const real* dy, real* g,
                         Dst dbias) {
  const Index tile = tile_rows(T, N, 32 * 1024), piece = std::max<Index>(4, 4096 / std::max<Index>(N, 1));
  ColumnSums sums(dbias ? T : 0, N, tile);
  parallel_for(T, tile, [&](Index begin, Index end) {
    real* const biases = dbias ? sums.of_tile(begin) : nullptr;
    for (Index t = begin; t < end; t += piece) {
      const Index rows = std::min(piece, end - t), start = t * N;
      unary_backward(function_of(activation), rows * N, kept + start, dy + start, {g + start, 0});
      if (biases != nullptr) add_rows(rows, N, g + start, biases);
    }
  });
  sums.finish(dbias);
}

}  // namespace weft

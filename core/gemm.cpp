#include "weft/core/gemm.h"

namespace weft {

void apply_epilogue(const Epilogue& epilogue, const Tile& tile, real* C, Index stride) {
  const Index width = tile.column_end - tile.column_begin;
  for (Index r = tile.row_begin; r < tile.row_end && (epilogue.bias != nullptr || epilogue.relu); ++r) {
    real* row = C + r * stride + tile.column_begin;
    if (epilogue.bias != nullptr) {
      const real* bias = epilogue.bias + tile.column_begin;
#pragma omp simd
      for (Index c = 0; c < width; ++c) row[c] += bias[c];
    }
    if (epilogue.relu) {
#pragma omp simd
      for (Index c = 0; c < width; ++c) row[c] = row[c] < 0 ? 0 : row[c];
    }
  }
  if (epilogue.finish != nullptr) (*epilogue.finish)(tile);
}

}  // namespace weft

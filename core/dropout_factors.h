// The factors of dropout, row by row, for kernels that apply them while they do something else. For kernel files only.
#pragma once

#include "weft/core/kernels.h"

namespace weft {

/// What dropout_factors gives, with what is the same for all rows of a mask made once.
class DropoutFactors {
 public:
  /// Columns of the longest piece that a matrix's rows are cut into; each has a row number of its own.
  static constexpr Index kPiece = 1024;

  explicit DropoutFactors(const DropoutMask& dropout);

  /// The factors of the first `columns` columns of a row.
  void row(std::uint64_t number, Index columns, real* factors) const;

  /// Those of row t of a matrix from column d, a multiple of kPiece, on: at most kPiece.
  void piece(Index t, Index d, Index columns, real* factors) const {
    row(static_cast<std::uint64_t>(t) | static_cast<std::uint64_t>(d) << 32, columns, factors);
  }

 private:
  void group(std::uint64_t number, std::uint32_t call, real* factors) const;

  std::uint64_t seed_;
  std::uint64_t place_;      // of step and site
  std::uint32_t threshold_;  // a number of 16 bits below it drops its column
  real keep_;                // the factor of the other columns
};

}  // namespace weft

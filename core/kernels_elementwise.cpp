// Elementwise kernels. Every function of one element is written once, as a pair of a value and a derivative.
#include <algorithm>
#include <array>
#include <cmath>

#include "weft/core/kernels.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

constexpr Index kTile = 16 * 1024;  // elements

/// Rows a tile, so that it has about kTile elements.
Index row_tile(Index columns) { return std::max<Index>(1, kTile / std::max<Index>(columns, 1)); }

// derivative(v): of the argument x, or of the result y where kFromResult says so.
struct Neg {
  static constexpr bool kFromResult = true;
  static real value(real x) { return -x; }
  static real derivative(real) { return -1; }
};
struct Exp {
  static constexpr bool kFromResult = true;
  static real value(real x) { return simd::exp(x); }
  static real derivative(real y) { return y; }
};
struct Log {
  static constexpr bool kFromResult = false;
  static real value(real x) { return std::log(x); }
  static real derivative(real x) { return 1 / x; }
};
struct Sqrt {
  static constexpr bool kFromResult = true;
  static real value(real x) { return std::sqrt(x); }
  static real derivative(real y) { return real{0.5} / y; }
};
struct Relu {
  static constexpr bool kFromResult = true;
  static real value(real x) { return x < 0 ? 0 : x; }  // NaN stays NaN
  static real derivative(real y) { return y > 0 ? real{1} : real{0}; }
};
struct Gelu {
  static constexpr bool kFromResult = false;
  static real value(real x) { return x * simd::normal_cdf(x); }
  static real derivative(real x) { return simd::normal_cdf(x) + x * simd::normal_pdf(x); }
};
struct Silu {
  static constexpr bool kFromResult = false;
  static real value(real x) { return x * simd::sigmoid(x); }
  static real derivative(real x) {
    const real s = simd::sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};
struct Tanh {
  static constexpr bool kFromResult = true;
  static real value(real x) { return simd::tanh(x); }
  static real derivative(real y) { return 1 - y * y; }
};
struct Sigmoid {
  static constexpr bool kFromResult = true;
  static real value(real x) { return simd::sigmoid(x); }
  static real derivative(real y) { return y * (1 - y); }
};

/// Calls f with the function's struct.
template <class F>
auto dispatch(Unary function, F f) {
  switch (function) {
    case Unary::kNeg:
      return f(Neg{});
    case Unary::kExp:
      return f(Exp{});
    case Unary::kLog:
      return f(Log{});
    case Unary::kSqrt:
      return f(Sqrt{});
    case Unary::kRelu:
      return f(Relu{});
    case Unary::kGelu:
      return f(Gelu{});
    case Unary::kSilu:
      return f(Silu{});
    case Unary::kTanh:
      return f(Tanh{});
    case Unary::kSigmoid:
      break;
  }
  return f(Sigmoid{});
}

/// dst[i] = beta * dst[i] + value(i) for i in [begin, end).
template <class Value>
void put(Index begin, Index end, Dst dst, Value value) {
  real* out = dst.data;
  if (dst.beta == 0) {
#pragma omp simd
    for (Index i = begin; i < end; ++i) out[i] = value(i);
  } else {
    const real beta = dst.beta;
#pragma omp simd
    for (Index i = begin; i < end; ++i) out[i] = beta * out[i] + value(i);
  }
}

/// The same over all of [0, size), on several threads.
template <class Value>
void put_all(Index size, Dst dst, Value value) {
  parallel_for(size, kTile, [&](Index begin, Index end) { put(begin, end, dst, value); });
}

real apply(Binary function, real a, real b) {
  switch (function) {
    case Binary::kAdd:
      return a + b;
    case Binary::kSub:
      return a - b;
    case Binary::kMul:
      return a * b;
    case Binary::kDiv:
      break;
  }
  return a / b;
}

/// Calls f(index_of_b), a function from (where the row of a starts, column) to where b is.
template <class F>
void with_spread(Spread spread, F f) {
  switch (spread) {
    case Spread::kSame:
      return f([](Index row_start, Index column) { return row_start + column; });
    case Spread::kRow:
      return f([](Index, Index column) { return column; });
    case Spread::kScalar:
      break;
  }
  f([](Index, Index) { return Index{0}; });
}

/// Runs row(start of row t) for every t, on several threads.
template <class Row>
void for_rows(Index T, Index D, Row row) {
  parallel_for(T, row_tile(D), [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) row(t * D);
  });
}

}  // namespace

void accumulate(Index size, const real* g, Dst dst) {
  if (dst) put_all(size, dst, [=](Index i) { return g[i]; });
}

void accumulate_scaled(Index size, real factor, const real* g, Dst dst) {
  if (dst) put_all(size, dst, [=](Index i) { return factor * g[i]; });
}

void unary(Unary function, Index size, const real* x, real* y) {
  dispatch(function, [&](auto f) { put_all(size, {y, 0}, [=](Index i) { return f.value(x[i]); }); });
}

bool derivative_from_result(Unary function) {
  return dispatch(function, [](auto f) { return f.kFromResult; });
}

void unary_backward(Unary function, Index size, const real* x_or_y, const real* dy, Dst dx) {
  if (!dx) return;
  dispatch(function, [&](auto f) { put_all(size, dx, [=](Index i) { return dy[i] * f.derivative(x_or_y[i]); }); });
}

void binary(Binary function, Spread spread, Index T, Index D, const real* a, const real* b, real* y) {
  with_spread(spread, [&](auto at) {
    for_rows(T, D, [&](Index start) {
#pragma omp simd
      for (Index d = 0; d < D; ++d) y[start + d] = apply(function, a[start + d], b[at(start, d)]);
    });
  });
}

void binary_backward_a(Binary function, Spread spread, Index T, Index D, const real* b, const real* dy, Dst da) {
  if (!da) return;
  with_spread(spread, [&](auto at) {
    for_rows(T, D, [&](Index start) {
      put(0, D, {da.data + start, da.beta}, [&](Index d) {
        const real g = dy[start + d];
        if (function == Binary::kMul) return g * b[at(start, d)];
        if (function == Binary::kDiv) return g / b[at(start, d)];
        return g;
      });
    });
  });
}

void binary_backward_b(Binary function, Spread spread, Index T, Index D, const real* a, const real* b, const real* dy,
                       Dst db) {
  if (!db) return;
  with_spread(spread, [&](auto at) {
    const auto term = [&](Index start, Index d) {
      const real g = dy[start + d];
      switch (function) {
        case Binary::kAdd:
          return g;
        case Binary::kSub:
          return -g;
        case Binary::kMul:
          return g * a[start + d];
        case Binary::kDiv:
          break;
      }
      const real divisor = b[at(start, d)];
      return -g * a[start + d] / (divisor * divisor);
    };
    if (spread == Spread::kSame) {
      for_rows(T, D, [&](Index start) {
        put(0, D, {db.data + start, db.beta}, [&](Index d) { return term(start, d); });
      });
    } else if (spread == Spread::kRow) {
      parallel_for(D, 64, [&](Index begin, Index end) {  // each tile of columns adds up all rows in order
        std::array<real, 64> total{};
        for (Index t = 0; t < T; ++t) {
          for (Index d = begin; d < end; ++d) total[static_cast<std::size_t>(d - begin)] += term(t * D, d);
        }
        put(begin, end, db, [&](Index d) { return total[static_cast<std::size_t>(d - begin)]; });
      });
    } else {
      double total = 0;
      for (Index t = 0; t < T; ++t) {
        for (Index d = 0; d < D; ++d) total += static_cast<double>(term(t * D, d));
      }
      put(0, 1, db, [&](Index) { return static_cast<real>(total); });
    }
  });
}

}  // namespace weft

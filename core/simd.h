// Small vector tools for the kernels: reductions whose order depends on the length alone (a compiler's own vectorised
// reductions may depend on alignment), and functions of one element that vectorise. For kernel files only.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "weft/core/types.h"

namespace weft::simd {

/// 64 bytes of elements; the compiler splits it where the CPU's registers are shorter.
using Vec = real __attribute__((vector_size(64)));
constexpr Index kLanes = 64 / sizeof(real);

inline Vec load(const real* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(real* p, Vec v) { std::memcpy(p, &v, sizeof v); }

/// Integers of the size of the elements.
using IntVec = std::conditional_t<sizeof(real) == 4, std::int32_t, std::int64_t> __attribute__((vector_size(64)));

/// 0, 1, 2, ...
inline Vec lane_numbers() {
  Vec v;
  for (Index i = 0; i < kLanes; ++i) v[i] = static_cast<real>(i);
  return v;
}

/// Of every block of 2 kDistance lanes, the low (or high) half of a followed by that of b.
template <Index kDistance, bool kHigh, std::size_t... kLane>
inline Vec merge_halves(Vec a, Vec b, std::index_sequence<kLane...>) {
  constexpr auto source = [](Index lane) {
    const bool from_b = (lane & kDistance) != 0;
    return static_cast<int>((from_b ? lane - kDistance + kLanes : lane) + (kHigh ? kDistance : 0));
  };
#ifdef __clang__
  return __builtin_shufflevector(a, b, source(static_cast<Index>(kLane))...);
#else
  return __builtin_shuffle(a, b, IntVec{source(static_cast<Index>(kLane))...});
#endif
}

/// Transposes a square of kLanes vectors, whose halves of blocks change places, from single lanes on.
template <Index kDistance = 1>
inline void transpose(Vec (&rows)[kLanes]) {
  constexpr auto kAll = std::make_index_sequence<static_cast<std::size_t>(kLanes)>();
#pragma GCC unroll 16
  for (Index i = 0; i < kLanes; ++i) {
    if ((i & kDistance) != 0) continue;
    const Vec a = rows[i], b = rows[i + kDistance];
    rows[i] = merge_halves<kDistance, false>(a, b, kAll);
    rows[i + kDistance] = merge_halves<kDistance, true>(a, b, kAll);
  }
  if constexpr (2 * kDistance < kLanes) transpose<2 * kDistance>(rows);
}

/// The sum of the lanes, pairwise.
inline real lane_sum(Vec v) {
  using Half = real __attribute__((vector_size(32)));
  using Quarter = real __attribute__((vector_size(16)));
  Half halves[2];
  std::memcpy(halves, &v, sizeof v);
  const Half half = halves[0] + halves[1];
  Quarter quarters[2];
  std::memcpy(quarters, &half, sizeof half);
  const Quarter q = quarters[0] + quarters[1];
#ifdef WEFT_DOUBLE
  return q[0] + q[1];
#else
  return (q[0] + q[2]) + (q[1] + q[3]);
#endif
}

/// The sums of the lanes of four vectors, each as lane_sum gives it.
inline void lane_sums(const Vec* v, real* sums) {
#if __has_builtin(__builtin_shufflevector) && !defined(WEFT_DOUBLE)
  const auto halves = [](Vec a, Vec b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  };
  const Vec ab = halves(v[0], v[1]), cd = halves(v[2], v[3]);
  Vec all = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
            __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  all += __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  all += __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  const Vec first = __builtin_shufflevector(all, all, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  std::memcpy(sums, &first, 4 * sizeof(real));
#else
  for (int i = 0; i < 4; ++i) sums[i] = lane_sum(v[i]);
#endif
}

/// Adds term(i) over i in [0, n), where vector_term(i) gives the terms i to i + kLanes - 1.
template <class VectorTerm, class Term>
inline real reduce(Index n, VectorTerm vector_term, Term term) {
  Vec a{}, b{};
  Index i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a += vector_term(i);
    b += vector_term(i + kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) a += vector_term(i);
  real rest = 0;
  for (; i < n; ++i) rest += term(i);
  return lane_sum(a + b) + rest;
}

inline real sum(Index n, const real* x) {
  return reduce(
      n, [=](Index i) { return load(x + i); }, [=](Index i) { return x[i]; });
}

inline real dot(Index n, const real* x, const real* y) {
  return reduce(
      n, [=](Index i) { return load(x + i) * load(y + i); }, [=](Index i) { return x[i] * y[i]; });
}

/// The sum of (x - center)^2.
inline real sum_of_squares(Index n, const real* x, real center) {
  return reduce(
      n,
      [=](Index i) {
        const Vec d = load(x + i) - center;
        return d * d;
      },
      [=](Index i) { return (x[i] - center) * (x[i] - center); });
}

/// The largest element; minus infinity for none. A NaN may or may not be found.
inline real max(Index n, const real* x) {
  constexpr real kLowest = -std::numeric_limits<real>::infinity();
  Vec largest[4] = {Vec{} + kLowest, Vec{} + kLowest, Vec{} + kLowest, Vec{} + kLowest};
  Index i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (Index k = 0; k < 4; ++k) {
      const Vec v = load(x + i + k * kLanes);
      largest[k] = v > largest[k] ? v : largest[k];
    }
  }
  const auto of_two = [](auto a, auto b) { return a > b ? a : b; };
  const Vec all = of_two(of_two(largest[0], largest[1]), of_two(largest[2], largest[3]));
  real lanes[kLanes];
  std::memcpy(lanes, &all, sizeof all);
#pragma GCC unroll 4
  for (Index width = kLanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (Index l = 0; l < width; ++l) lanes[l] = of_two(lanes[l], lanes[l + width]);
  }
  for (; i < n; ++i) lanes[0] = of_two(x[i], lanes[0]);
  return lanes[0];
}

/// e^x to about one unit in the last place; 0 below -87.3 and infinity above 88.7. x is reduced by a multiple of ln 2, in
/// two parts, to [-ln2/2, ln2/2], where a polynomial follows e^r (coefficients as in the Cephes library); vectorises.
inline float exp(float x) {
  const float low = -87.33654f, high = 88.72283f;
  float bounded = x < low ? low : x;
  bounded = bounded > high ? high : bounded;
  const float shifted = bounded * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the integer ends up in the low bits
  const float n = shifted - 12582912.0f;
  const float r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  // 2^n in two steps, since n may be 128
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(12582912.0f);
  const std::int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  float result = p * first * second;
  result = x < low ? 0.0f : result;
  return x > high ? std::numeric_limits<float>::infinity() : result;
}
inline double exp(double x) { return std::exp(x); }

/// e^x of each lane where x <= 0 (or just above), as exp() does it; 0 below -87.3 (-708 in double), NaN for NaN.
inline Vec exp_negative(Vec x) {
#ifdef WEFT_DOUBLE
  for (Index i = 0; i < kLanes; ++i) x[i] = std::exp(x[i]);
  return x;
#else
  const Vec low = Vec{} - 87.33654f, magic = Vec{} + 12582912.0f;
  const Vec bounded = x < low ? low : x;
  const Vec shifted = bounded * 1.44269504f + magic;
  const Vec n = shifted - magic;
  const Vec r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  const IntVec exponent = std::bit_cast<IntVec>(shifted) - std::bit_cast<std::int32_t>(12582912.0f);
  const Vec power = std::bit_cast<Vec>((exponent + 127) << 23);
  return x < low ? Vec{} : p * power;
#endif
}

/// The natural logarithm of each lane, a normal positive number or NaN, to about one unit in the last place. x is a power
/// of two times a number near 1, whose logarithm is a polynomial (coefficients as in the Cephes library).
inline Vec log_positive(Vec x) {
#ifdef WEFT_DOUBLE
  for (Index i = 0; i < kLanes; ++i) x[i] = std::log(x[i]);
  return x;
#else
  const IntVec bits = std::bit_cast<IntVec>(x);
  const IntVec exponent = (bits - std::bit_cast<std::int32_t>(0.70710678f)) >> 23;
  const Vec n = __builtin_convertvector(exponent, Vec);
  const Vec r = std::bit_cast<Vec>(bits - (exponent << 23)) - 1.0f;  // in [sqrt(1/2) - 1, sqrt(2) - 1)
  Vec p = r * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  const Vec square = r * r;
  const Vec small = p * square * r + n * -2.12194440e-4f - 0.5f * square;
  return r + small + n * 0.693359375f + (x - x);  // the last for NaN
#endif
}

/// 1 / (1 + e^-x).
inline real sigmoid(real x) { return real{1} / (real{1} + exp(-x)); }

inline float tanh(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float e = exp(-2.0f * magnitude);
  const float large = (1.0f - e) / (1.0f + e);
  const float square = x * x;  // near 0 the quotient would lose its digits
  const float small = magnitude * (1.0f + square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315))));
  const float result = magnitude < 0.15f ? small : large;
  return x < 0 ? -result : result;
}
inline double tanh(double x) { return std::tanh(x); }

/// The normal distribution function, from the complementary error function's approximation 7.1.26 of Abramowitz and
/// Stegun (absolute error below 1.5e-7) in float, and from std::erfc in double.
inline float normal_cdf(float x) {
  const float z = (x < 0 ? -x : x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  const float poly =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float tail = 0.5f * poly * exp(-z * z);
  return x < 0 ? tail : 1.0f - tail;
}
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

/// The normal density.
inline real normal_pdf(real x) { return static_cast<real>(0.39894228040143267794) * exp(real{-0.5} * x * x); }

// ---- loops over a row whose body is written once, for a vector and for one element -----------------------------------

/// A vector or an element from memory.
template <class V>
inline V get(const real* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// p = beta * p + v, where p is not read when beta is 0.
template <class V>
inline void put(real* p, real beta, V v) {
  if (beta == 1) {
    v += get<V>(p);
  } else if (beta != 0) {
    v += beta * get<V>(p);
  }
  std::memcpy(p, &v, sizeof v);
}

/// Calls body(zero, i) so that every i in [0, n) is reached: for elements i to i + kLanes - 1 with a zero of type Vec, at
/// the end for single elements with one of type real.
template <class Body>
inline void each(Index n, Body body) {
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) body(Vec{}, i);
  for (; i < n; ++i) body(real{0}, i);
}

/// The same for a body that returns an array of terms, which are added up: in an order that depends on n alone.
template <std::size_t kCount, class Terms>
inline std::array<real, kCount> sums(Index n, Terms terms) {
  std::array<Vec, kCount> even{}, odd{};
  const auto add = [](auto& totals, const auto& some) {
    for (std::size_t k = 0; k < kCount; ++k) totals[k] += some[k];
  };
  Index i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    add(even, terms(Vec{}, i));
    add(odd, terms(Vec{}, i + kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) add(even, terms(Vec{}, i));
  std::array<real, kCount> totals{};
  for (; i < n; ++i) add(totals, terms(real{0}, i));
  for (std::size_t k = 0; k < kCount; ++k) totals[k] += lane_sum(even[k] + odd[k]);
  return totals;
}

}  // namespace weft::simd

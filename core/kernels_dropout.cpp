// Dropout: which elements are dropped is a function of a mask's seed, step and site and of the element's row and column,
// the same on every machine, so backward makes the mask again instead of keeping it.
#include <algorithm>
#include <array>

#include "weft/core/column_sums.h"
#include "weft/core/dropout_factors.h"
#include "weft/core/kernels.h"
#include "weft/core/simd.h"
#include "weft/core/threads.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && !defined(WEFT_DOUBLE)
#include <immintrin.h>
#define WEFT_VECTOR_DROPOUT 1
#endif

namespace weft {
namespace {

// One Philox call makes eight numbers of 16 bits; a group of eight calls side by side serves 64 columns. Of the group's
// column 32 v + 4 c + 2 w + h the number is half h (0: the low one) of word 2 v + w of call c.
constexpr Index kCalls = 8, kGroup = kCalls * 8;

// The fewest with which Philox4x32 passes all tests of BigCrush (Salmon et al. 2011, table 2).
constexpr int kRounds = 7;

constexpr Index kTile = 16 * 1024;  // elements

/// Calls f(start of the piece in the matrix, its length, its factors) for all pieces of rows, on several threads.
template <class Piece>
void for_pieces(const DropoutMask& dropout, Index T, Index D, Piece f) {
  const DropoutFactors make(dropout);
  parallel_for(T, tile_rows(T, D, kTile), [&](Index begin, Index end) {
    std::array<real, DropoutFactors::kPiece> factors;
    for (Index t = begin; t < end; ++t) {
      for (Index d = 0; d < D; d += DropoutFactors::kPiece) {
        const Index length = std::min(DropoutFactors::kPiece, D - d);
        make.piece(t, d, length, factors.data());
        f(t * D + d, length, factors.data());
      }
    }
  });
}

}  // namespace

DropoutFactors::DropoutFactors(const DropoutMask& dropout)
    : seed_(dropout.stream.seed),
      place_(dropout.site ^ (dropout.stream.step * 0x9E3779B97F4A7C15u)),
      threshold_(static_cast<std::uint32_t>(dropout.probability * 65536 + real{0.5})),
      keep_(threshold_ >= 65536 ? real{0} : static_cast<real>(65536.0 / (65536.0 - threshold_))) {}

#ifdef WEFT_VECTOR_DROPOUT

// A 64-bit lane holds one word of a call in its low half, as the instruction that multiplies wants it; what is in the high
// halves is of no account.
void DropoutFactors::group(std::uint64_t number, std::uint32_t call, real* factors) const {
  constexpr __mmask8 kAll = 0xFF;
  const auto all = [](std::uint64_t word) { return _mm512_set1_epi64(static_cast<long long>(word)); };
  __m512i c0 = _mm512_add_epi64(all(call), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  __m512i c1 = all(number), c2 = all(place_), c3 = all((place_ ^ number) >> 32);
  auto k0 = static_cast<std::uint32_t>(seed_), k1 = static_cast<std::uint32_t>(seed_ >> 32);
#pragma GCC unroll 7
  for (int round = 0; round < kRounds; ++round) {
    const __m512i p0 = _mm512_maskz_mul_epu32(kAll, c0, all(kPhiloxFactors[0])),
                  p1 = _mm512_maskz_mul_epu32(kAll, c2, all(kPhiloxFactors[1]));
    constexpr int kXor = 0x96;  // of three
    c0 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p1, 32), c1, all(k0), kXor);
    c2 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p0, 32), c3, all(k1), kXor);
    c1 = p1;
    c3 = p0;
    k0 += kPhiloxSteps[0];
    k1 += kPhiloxSteps[1];
  }
  constexpr __mmask16 kHighHalves = 0xAAAA;
  const __m512i numbers[2] = {_mm512_mask_shuffle_epi32(c0, kHighHalves, c1, _MM_PERM_CCAA),
                              _mm512_mask_shuffle_epi32(c2, kHighHalves, c3, _MM_PERM_CCAA)};
  const __m512i threshold = _mm512_set1_epi16(static_cast<short>(std::min(threshold_, 65535u)));
  const __m512 keep = _mm512_set1_ps(keep_);
  for (int v = 0; v < 2; ++v) {
    const __mmask32 kept = _mm512_cmpge_epu16_mask(numbers[v], threshold);
    _mm512_storeu_ps(factors + 32 * v, _mm512_maskz_mov_ps(static_cast<__mmask16>(kept), keep));
    _mm512_storeu_ps(factors + 32 * v + 16, _mm512_maskz_mov_ps(static_cast<__mmask16>(kept >> 16), keep));
  }
}

#else

void DropoutFactors::group(std::uint64_t number, std::uint32_t call, real* factors) const {
  alignas(64) std::uint32_t words[2][kCalls][2];
#pragma omp simd
  for (Index c = 0; c < kCalls; ++c) {
    const auto four =
        philox<kRounds>({call + static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(number),
                         static_cast<std::uint32_t>(place_), static_cast<std::uint32_t>((place_ ^ number) >> 32)},
                        seed_);
    words[0][c][0] = four[0];
    words[0][c][1] = four[1];
    words[1][c][0] = four[2];
    words[1][c][1] = four[3];
  }
  const std::uint32_t* word = &words[0][0][0];
#pragma omp simd
  for (Index i = 0; i < kGroup / 2; ++i) {
    factors[2 * i] = (word[i] & 0xFFFFu) >= threshold_ ? keep_ : real{0};
    factors[2 * i + 1] = word[i] >> 16 >= threshold_ ? keep_ : real{0};
  }
}

#endif

void DropoutFactors::row(std::uint64_t number, Index columns, real* factors) const {
  Index start = 0;
  for (; start + kGroup <= columns; start += kGroup) {
    group(number, static_cast<std::uint32_t>(start / 8), factors + start);
  }
  if (start == columns) return;
  alignas(64) real rest[kGroup];
  group(number, static_cast<std::uint32_t>(start / 8), rest);
  std::copy_n(rest, columns - start, factors + start);
}

void dropout_factors(const DropoutMask& dropout, std::uint64_t row, Index columns, real* factors) {
  DropoutFactors(dropout).row(row, columns, factors);
}

void dropout_rows(const DropoutMask& dropout, Index T, Index D, const real* x, Dst y) {
  if (!y) return;
  for_pieces(dropout, T, D, [=](Index start, Index length, const real* factors) {
    simd::each(length, [=](auto zero, Index i) {
      using V = decltype(zero);
      simd::put(y.data + start + i, y.beta, simd::get<V>(x + start + i) * simd::get<V>(factors + i));
    });
  });
}

void residual_rows(const DropoutMask& dropout, Index T, Index D, const real* x, const real* z, real* y) {
  if (dropout.probability == 0) {
    binary(Binary::kAdd, Spread::kSame, T, D, x, z, y);
    return;
  }
  for_pieces(dropout, T, D, [=](Index start, Index length, const real* factors) {
    simd::each(length, [=](auto zero, Index i) {
      using V = decltype(zero);
      const V dropped = simd::get<V>(z + start + i) * simd::get<V>(factors + i);
      simd::put(y + start + i, 0, simd::get<V>(x + start + i) + dropped);
    });
  });
}

}  // namespace weft

#include "weft/core/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/core/kernels.h"

using namespace weft;

TEST_CASE("Philox4x32-10 gives the known answers of its authors") {
  CHECK(philox({0, 0, 0, 0}, 0) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("Philox4x32-7 gives the known answers of its authors") {
  CHECK(philox<7>({0, 0, 0, 0}, 0) == std::array<std::uint32_t, 4>{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48});
  CHECK(philox<7>({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff) ==
        std::array<std::uint32_t, 4>{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662});
}

TEST_CASE("dropout has the mask of Philox4x32-7, whatever instructions make it") {
  DropoutMask mask;
  mask.probability = static_cast<real>(0.3);
  mask.stream = {0x123456789ABCDEF0u, 41};
  mask.site = random_site("somewhere");
  const std::uint64_t row = 0x500000007u, place = mask.site ^ 41 * 0x9E3779B97F4A7C15u;
  constexpr Index kColumns = 201;
  std::vector<real> factors(kColumns);
  dropout_factors(mask, row, kColumns, factors.data());
  Index dropped = 0, equal = 0;
  for (std::uint32_t column = 0; column < kColumns; ++column) {
    const std::uint32_t within = column % 32, call = column / 64 * 8 + within / 4;
    const auto words = philox<7>({call, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(place),
                                  static_cast<std::uint32_t>(place >> 32) ^ static_cast<std::uint32_t>(row >> 32)},
                                 mask.stream.seed);
    const std::uint32_t number = words[column % 64 / 32 * 2 + within % 4 / 2] >> (within % 2 * 16) & 0xFFFFu;
    const bool drops = number < 19661;  // 0.3 of 65,536
    dropped += drops ? 1 : 0;
    equal += factors[column] == (drops ? real{0} : static_cast<real>(65536.0 / (65536.0 - 19661.0))) ? 1 : 0;
  }
  CHECK(equal == kColumns);
  CHECK(dropped > 40);
  CHECK(dropped < 80);
}

TEST_CASE("shuffle is a permutation, the same for the same seed, another for another") {
  std::vector<int> first(100), second(100), third(100);
  for (auto* items : {&first, &second, &third}) std::iota(items->begin(), items->end(), 0);
  Random(7).shuffle(first);
  Random(7).shuffle(second);
  Random(8).shuffle(third);
  CHECK(first == second);
  CHECK(first != third);
  std::sort(first.begin(), first.end());
  CHECK(first[0] == 0);
  CHECK(first[99] == 99);
}

TEST_CASE("below stays below its bound and reaches every value") {
  Random random(3);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 700; ++i) ++seen.at(random.below(7));
  CHECK(*std::min_element(seen.begin(), seen.end()) > 50);
}

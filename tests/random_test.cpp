#include "weft/core/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace weft;

TEST_CASE("Philox4x32-10 gives the known answers of its authors") {
  CHECK(philox({0, 0, 0, 0}, 0) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
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

#include "weft/data/lower_case.h"

#include <doctest/doctest.h>

#include "score_fixture.h"

using weft::lower_case;

TEST_CASE("lower case equals that of Python's str.lower()") {
  const weft::Json& pairs = weft::score_fixture()["lower"];
  REQUIRE(pairs.size() >= 1000);
  for (const weft::Json& pair : pairs) {
    CAPTURE(pair.dump());
    CHECK(lower_case(pair[0].get<std::string>()) == pair[1].get<std::string>());
  }
}

TEST_CASE("letters that become two, final sigmas, and bytes that are no text") {
  CHECK(lower_case("\u0130\u0131I") == "i\u0307\u0131i");
  CHECK(lower_case("\u039F\u0394\u039F\u03A3 \u03A3\u039F\u03A3, \u03A3") ==
        "\u03BF\u03B4\u03BF\u03C2 \u03C3\u03BF\u03C2, \u03C3");
  CHECK(lower_case("A\xC3 \xFF\x80Z") == "a\xC3 \xFF\x80z");
  CHECK(lower_case("") == "");
}

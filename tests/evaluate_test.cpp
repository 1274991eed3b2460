#include "weft/train/evaluate.h"

#include <doctest/doctest.h>

#include "throws.h"
#include "weft/core/error.h"

using namespace weft;
using Strings = std::vector<std::string>;

TEST_CASE("an exact match is a line equal to one of its references") {
  const Strings hypotheses = {"a b", "", "c", "d "};
  const std::vector<Strings> one = {{"a b", "", "x", "d"}}, two = {{"a b", "", "x", "d"}, {"y", "y", "c", "d"}};
  CHECK(exact_matches(hypotheses, one) == std::vector<bool>{true, true, false, false});
  CHECK(exact_matches(hypotheses, two) == std::vector<bool>{true, true, true, false});
  CHECK(share_of(exact_matches(hypotheses, one)) == 0.5);
  CHECK(share_of({}) == 0.0);
  const std::vector<std::size_t> lines = {1, 2, 3};
  CHECK(share_of(exact_matches(hypotheses, two), lines) == 2.0 / 3);
  CHECK(share_of({}, std::vector<std::size_t>()) == 0.0);
  CHECK_THROWS_SAYING(exact_matches(Strings{"a"}, one), "1 hypotheses but 4 references", DataError);
}

TEST_CASE("lines are put into buckets by length, each into one, without empty buckets") {
  const std::vector<Index> lengths = {5, 0, 1, 51, 6, 10, 11, 20, 30, 31, 50, 400};
  std::vector<std::pair<std::string, std::vector<std::size_t>>> found;
  for (const LengthBucket& bucket : buckets_by_length(lengths)) found.emplace_back(bucket.name, bucket.lines);
  CHECK(found == std::vector<std::pair<std::string, std::vector<std::size_t>>>{{"0", {1}},
                                                                               {"1-5", {0, 2}},
                                                                               {"6-10", {4, 5}},
                                                                               {"11-20", {6, 7}},
                                                                               {"21-30", {8}},
                                                                               {"31-50", {9, 10}},
                                                                               {"51+", {3, 11}}});
  CHECK(buckets_by_length(std::vector<Index>{12, 13}).size() == 1);
  CHECK(buckets_by_length({}).empty());
}

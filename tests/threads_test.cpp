#include "weft/core/threads.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <vector>

using namespace weft;

TEST_CASE("parallel_for visits every item once, in tiles that do not depend on the threads") {
  for (const int count : {1, 2, 3, 8}) {
    set_threads(count);
    std::vector<int> visits(1001, 0);
    std::vector<Index> tile_begin(1001, -1);
    parallel_for(1001, 64, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        ++visits[static_cast<std::size_t>(i)];
        tile_begin[static_cast<std::size_t>(i)] = begin;
      }
    });
    for (std::size_t i = 0; i < visits.size(); ++i) {
      CHECK(visits[i] == 1);
      CHECK(tile_begin[i] == static_cast<Index>(i / 64 * 64));
    }
  }
  set_threads(2);
}

TEST_CASE("0 threads are as many as there were before any number was set") {
  set_threads(0);
  const int by_default = threads();
  CHECK(by_default >= 1);
  set_threads(by_default + 3);
  CHECK(threads() == by_default + 3);
  set_threads(0);
  CHECK(threads() == by_default);
  set_threads(2);
}

TEST_CASE("parallel_for nests, does nothing for no items, and passes an exception on") {
  set_threads(2);
  int sum = 0;
  parallel_for(0, 8, [&](Index, Index) { ++sum; });
  CHECK(sum == 0);
  std::vector<int> inner(4, 0);
  parallel_for(
      4, 1, [&](Index i, Index) { parallel_for(10, 1, [&](Index, Index) { ++inner[static_cast<std::size_t>(i)]; }); });
  CHECK(inner == std::vector<int>{10, 10, 10, 10});
  CHECK_THROWS_AS(parallel_for(4, 1,
                               [](Index i, Index) {
                                 if (i == 2) throw std::runtime_error("two");
                               }),
                  std::runtime_error);
}

TEST_CASE("threads can be started before there is a loop") {
  const auto running = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  set_threads(12);
  const auto before = running();  // 8 at most, for the loops of other tests
  start_threads();
  const auto started = running();
  CHECK(started >= before + 4);
  start_threads();
  CHECK(running() == started);
  set_threads(2);
}

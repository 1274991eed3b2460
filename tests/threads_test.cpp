#include "weft/core/threads.h"

#include <doctest/doctest.h>

#include <cfenv>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace weft;

namespace {

std::ptrdiff_t running() { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); }

}  // namespace

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
  set_threads(12);
  const auto before = running();  // 8 at most, for the loops of other tests
  start_threads();
  const auto started = running();
  CHECK(started >= before + 4);
  start_threads();
  CHECK(running() == started);
  set_threads(2);
}

TEST_CASE("threads that are too many end") {
  const auto settles_at = [](std::ptrdiff_t count) {  // one that has ended is listed for a moment more
    for (int i = 0; i < 1000 && running() != count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return running() == count;
  };
  set_threads(12);
  start_threads();
  const auto started = running();
  set_threads(3);
  CHECK(settles_at(started - 9));
  std::vector<int> visits(50, 0);
  parallel_for(50, 1, [&](Index i, Index) {
    ++visits[static_cast<std::size_t>(i)];
    set_threads(1);  // within a loop it ends none
  });
  CHECK(visits == std::vector<int>(50, 1));
  CHECK(running() == started - 9);
  set_threads(1);
  CHECK(settles_at(started - 11));
  set_threads(5);
  start_threads();
  CHECK(running() == started - 7);
  set_threads(2);
}

TEST_CASE("all threads round as the one whose loop it is, also if it changed its way after they began") {
  set_threads(4);
  start_threads();
  const auto loop = [] {
    std::vector<double> thirds(32);
    parallel_for(32, 1, [&](Index i, Index) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that others take some too
      const volatile double one = 1, three = 3;
      thirds[static_cast<std::size_t>(i)] = one / three;
    });
    CHECK(thirds == std::vector<double>(32, thirds[0]));
    return thirds[0];
  };
  const double nearest = loop();
  std::fesetround(FE_UPWARD);
  const double above = loop();
  std::fesetround(FE_TONEAREST);
  CHECK(above > nearest);
  CHECK(loop() == nearest);
  set_threads(2);
}

#include "weft/core/tensor.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"
#include "weft/core/threads.h"

using namespace weft;

namespace {

Tensor counting(const Shape& shape) {
  Tensor tensor(shape);
  std::iota(tensor.values().begin(), tensor.values().end(), real{0});
  return tensor;
}

}  // namespace

TEST_CASE("a shape is seen as a matrix of its rows") {
  struct Expected {
    Shape shape;
    Index rows, cols;
    const char* text;
  };
  for (const Expected& e : {Expected{{}, 1, 1, "[]"},
                            {{5}, 1, 5, "[5]"},
                            {{3, 5}, 3, 5, "[3, 5]"},
                            {{2, 3, 5}, 6, 5, "[2, 3, 5]"},
                            {{7, 2, 3, 5}, 42, 5, "[7, 2, 3, 5]"},
                            {{0, 5}, 0, 5, "[0, 5]"},
                            {{5, 0}, 5, 0, "[5, 0]"}}) {
    CAPTURE(e.text);
    CHECK(e.shape.rows() == e.rows);
    CHECK(e.shape.cols() == e.cols);
    CHECK(e.shape.size() == e.rows * e.cols);
    CHECK(to_string(e.shape) == e.text);
  }
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{6} != Shape{6, 1});
  CHECK(Shape{} != Shape{0});
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5}), ShapeError);
  CHECK_THROWS_AS((Shape{2, -1}), ShapeError);
}

TEST_CASE("copies, reshapes and ranges share the elements, a clone does not") {
  Tensor x = counting({4, 6});
  CHECK(x.unique());
  Tensor copy = x, flat = x.reshaped({24}), rows = x.row_range(1, 3), part = x.view(7, {5});
  CHECK_FALSE(x.unique());
  x.values()[8] = 100;
  CHECK(copy.values()[8] == 100);
  CHECK(flat.values()[8] == 100);
  CHECK(rows.shape() == Shape{2, 6});
  CHECK(rows.values()[2] == 100);
  CHECK(part.values()[1] == 100);
  Tensor clone = x.clone();
  x.values()[8] = 8;
  CHECK(clone.values()[8] == 100);
  CHECK(clone.unique());
  x = Tensor();
  copy = Tensor();
  flat = Tensor();
  part = Tensor();
  CHECK(rows.unique());
  CHECK(rows.values()[2] == 8);  // a view keeps the elements alive
  const Tensor moved = std::move(rows);
  CHECK_FALSE(rows.defined());  // NOLINT(bugprone-use-after-move): that is the point
  CHECK(moved.values()[0] == 6);
}

TEST_CASE("row ranges work along the first dimension of any rank") {
  CHECK(counting({5}).row_range(2, 4).shape() == Shape{2});
  CHECK(counting({5}).row_range(2, 4).values()[0] == 2);
  CHECK(counting({3, 2, 4}).row_range(1, 2).shape() == Shape{1, 2, 4});
  CHECK(counting({3, 2, 4}).row_range(1, 2).values()[0] == 8);
  CHECK(counting({3, 2, 2, 2}).row_range(2, 3).shape() == Shape{1, 2, 2, 2});
  CHECK(counting({3, 2, 2, 2}).row_range(2, 3).values()[7] == 23);
  CHECK(counting({3, 2}).row_range(3, 3).size() == 0);
  CHECK(counting({0, 2}).row_range(0, 0).size() == 0);
}

TEST_CASE("what does not fit throws a ShapeError") {
  const Tensor x = counting({4, 6});
  CHECK_THROWS_AS(x.reshaped({5, 5}), ShapeError);
  CHECK_THROWS_AS(x.row_range(3, 5), ShapeError);
  CHECK_THROWS_AS(x.row_range(-1, 2), ShapeError);
  CHECK_THROWS_AS(x.row_range(2, 1), ShapeError);
  CHECK_THROWS_AS(counting({}).row_range(0, 1), ShapeError);
  CHECK_THROWS_AS(x.view(20, {5}), ShapeError);
  CHECK_THROWS_AS(x.view(-1, {5}), ShapeError);
  CHECK_THROWS_AS(x.item(), ShapeError);
  CHECK_THROWS_AS(Tensor().item(), ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::of({2, 2}, {1, 2, 3}), "[tensor] 3 values for shape [2, 2], which has 4", ShapeError);
  CHECK(Tensor::of({1, 1}, {5}).item() == 5);
  CHECK(Tensor::full({}, 3).item() == 3);
}

TEST_CASE("tensors of any size are aligned to 64 bytes and do not overlap") {
  std::vector<Tensor> tensors;
  for (Index n = 0; n < 3000; n = n * 5 / 4 + 1) tensors.push_back(Tensor::full({n}, static_cast<real>(n)));
  for (const Tensor& tensor : tensors) {
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
    for (const real x : tensor.values()) REQUIRE(x == static_cast<real>(tensor.size()));
  }
}

TEST_CASE("the pool counts what is handed out, reuses what comes back, and gives it up when asked") {
  const MemoryStatistics start = memory_statistics();
  constexpr Index kElements = 123457;
  constexpr Index kBytes = kElements * static_cast<Index>(sizeof(real));
  {
    const Tensor one({kElements});
    const Tensor two({kElements});
    const Index held = memory_statistics().current_bytes - start.current_bytes;
    CHECK(held >= 2 * kBytes);
    CHECK(held <= 2 * (kBytes + 64) * 5 / 4);  // four size classes for each power of two
  }
  MemoryStatistics now = memory_statistics();
  CHECK(now.current_bytes == start.current_bytes);
  CHECK(now.peak_bytes >= start.current_bytes + 2 * kBytes);
  CHECK(now.heap_allocations == start.heap_allocations + 2);
  for (int i = 0; i < 5; ++i) {
    const Tensor one({kElements});
    const Tensor two({kElements - 10});
  }
  CHECK(memory_statistics().heap_allocations == now.heap_allocations);
  CHECK(memory_statistics().reserved_bytes == now.reserved_bytes);
  { const Tensor smaller({kElements * 3 / 4}); }  // takes one of the larger blocks
  CHECK(memory_statistics().reserved_bytes == now.reserved_bytes);
  { const Tensor much_smaller({kElements / 2}); }  // does not
  CHECK(memory_statistics().reserved_bytes > now.reserved_bytes);

  reset_peak_memory();
  CHECK(memory_statistics().peak_bytes == start.current_bytes);
  { const Tensor one({kElements}); }
  CHECK(memory_statistics().peak_bytes < start.current_bytes + 2 * kBytes);

  release_unused_memory();
  now = memory_statistics();
  CHECK(now.reserved_bytes == now.current_bytes);
}

TEST_CASE("the pool serves many threads at once") {
  const Index before = memory_statistics().current_bytes;
  std::vector<int> good(64, 0);
  set_threads(4);
  parallel_for(64, 1, [&](Index i, Index) {
    bool intact = true;
    for (Index n = 1; n < 200; ++n) {
      const Tensor x = Tensor::full({n * 7}, static_cast<real>(i));
      const Tensor y = x;
      for (const real v : y.values()) intact = intact && v == static_cast<real>(i);
    }
    good[static_cast<std::size_t>(i)] = intact;
  });
  set_threads(2);
  CHECK(good == std::vector<int>(64, 1));
  CHECK(memory_statistics().current_bytes == before);
}

TEST_CASE("memory that cannot be had is an error with the size in it") {
  CHECK_THROWS_SAYING(pool_allocate(std::size_t{1} << 60), "out of memory: cannot allocate 1152921504606846976 bytes",
                      Error);
}

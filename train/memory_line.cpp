#include "weft/train/memory_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "weft/core/memory.h"
#include "weft/core/out_of_memory.h"

namespace weft {
namespace {

/// A batch of 1/divisor of the rows, rounded up, so that its sentences are no longer than those of the whole. Powers of
/// two give blocks of the pool's same relative sizes.
BatchSize divided(const BatchSize& size, Index divisor) {
  const auto part = [&](Index n) { return (n + divisor - 1) / divisor; };
  return {part(size.sentences), part(size.source_rows), part(size.target_rows)};
}

}  // namespace

MemoryLine line_through(Index rows1, double bytes1, Index rows2, double bytes2) {
  if (rows2 <= rows1) return {bytes1, 0};
  const double row = std::max(0.0, (bytes2 - bytes1) / static_cast<double>(rows2 - rows1));
  return {std::max(0.0, bytes1 - row * static_cast<double>(rows1)), row};
}

double peak_of(FunctionRef<void()> work) {
  reset_peak_memory();
  const Index before = memory_statistics().current_bytes;
  try {
    work();
    return static_cast<double>(memory_statistics().peak_bytes - before);
  } catch (const OutOfMemory&) {
  } catch (const std::bad_alloc&) {
  }
  release_unused_memory();  // what follows may need it for other things than tensors
  return std::numeric_limits<double>::infinity();
}

MemoryLine line_of(FunctionRef<BatchSize(Index divisor)> part, Index last, double room,
                   FunctionRef<double(const BatchSize&)> peak) {
  constexpr Index kFirst = 512, kStep = 8;
  MemoryLine line;
  Index rows = 0, measured = 0;  // rows of the part before, and how many there were
  double bytes = 0;
  for (Index divisor = kFirst;;) {
    const BatchSize size = part(divisor);
    if (size.rows() > rows) {
      const double taken = std::min(peak(size), std::max(room, bytes) + 1);
      line = line_through(rows, bytes, size.rows(), taken);  // through nothing at first: the most that a row may take
      rows = size.rows();
      bytes = taken;
      ++measured;
    }
    if (divisor == last || bytes > room) break;
    const Index next = divisor > 2 * last ? std::max(divisor / kStep, 2 * last) : last;
    if (line.at(part(next).rows()) <= room) {
      divisor = next;
    } else if (measured == 1 || line.at(part(divisor / 2).rows()) <= room) {
      divisor /= 2;
    } else {
      break;
    }
  }
  return measured == 1 && bytes <= room ? MemoryLine{bytes, 0} : line;
}

MemoryLine line_of_batch(const BatchSize& size, double room, FunctionRef<double(const BatchSize&)> peak) {
  return line_of([&](Index divisor) { return divided(size, divisor); }, 4, room, peak);
}

BatchSize largest_of(const std::vector<BatchSize>& sizes, double room, FunctionRef<double(const BatchSize&)> peak) {
  if (sizes.size() == 1) return sizes.front();
  BatchSize largest;
  double most = -1;
  for (const BatchSize& size : sizes) {
    const double bytes = line_of_batch(size, room, peak).at(size.rows());
    if (bytes > most) largest = size;
    most = std::max(most, bytes);
  }
  return largest;
}

}  // namespace weft

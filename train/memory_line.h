// What a batch will take in memory, from parts of it: small ones first, none that would not fit.
#pragma once

#include <vector>

#include "weft/core/function_ref.h"
#include "weft/train/batch_size.h"

namespace weft {

/// Memory in bytes as a line over the rows of a batch, source and target together.
struct MemoryLine {
  double fixed = 0, row = 0;

  double at(Index rows) const { return fixed + row * static_cast<double>(rows); }
};

/// The line through two points of (rows, bytes), which falls nowhere.
MemoryLine line_through(Index rows1, double bytes1, Index rows2, double bytes2);

/// The most tensor memory in bytes that `work` takes beside what there is; infinity if memory is out.
double peak_of(FunctionRef<void()> work);

/// The line through what two parts of a batch take, 1/(2 last) and 1/last of it, where `part` makes one and `peak` says what
/// it takes. They are reached from small parts: where the next part would not fit into `room` bytes, it is not tried, and
/// the line is that of the parts before; of one that takes more, or for which memory is out, it is a little above the room.
/// `last` is a power of two up to 256.
MemoryLine line_of(FunctionRef<BatchSize(Index divisor)> part, Index last, double room,
                   FunctionRef<double(const BatchSize&)> peak);

/// What a batch of that size takes: line_of() an eighth and a quarter of it.
MemoryLine line_of_batch(const BatchSize& size, double room, FunctionRef<double(const BatchSize&)> peak);

/// That of these sizes, of which there is at least one, which takes most by its line_of_batch(). By an eighth alone what has
/// the same size for any batch, as the logits of a part of its rows have, would count eightfold.
BatchSize largest_of(const std::vector<BatchSize>& sizes, double room, FunctionRef<double(const BatchSize&)> peak);

}  // namespace weft

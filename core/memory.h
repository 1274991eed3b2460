// The pool of all tensor memory: blocks in size classes, aligned to 64 bytes, kept for reuse when freed, so that a loop of
// ever the same sizes takes nothing from the heap after its first turn; given back before they are half of all needed.
#pragma once

#include <cstddef>
#include <memory>

#include "weft/core/types.h"

namespace weft {

/// What the pool holds, in bytes of blocks handed out (not of blocks kept for reuse).
struct MemoryStatistics {
  Index current_bytes = 0;     ///< handed out now
  Index peak_bytes = 0;        ///< the most handed out at one time since the last reset_peak_memory()
  Index reserved_bytes = 0;    ///< taken from the heap, handed out or kept
  Index heap_allocations = 0;  ///< how often the pool went to the heap, ever
};

/// The statistics of the one pool of this process.
MemoryStatistics memory_statistics();

/// The most bytes that the pool holds, handed out or kept, where at most `needed` are handed out at one time (a block that
/// is lent for less than its size aside): before it would take more, it gives back kept blocks.
constexpr Index most_reserved(Index needed) { return needed + needed / 2 + (Index{4} << 20); }

/// Starts a new peak at what is handed out now.
void reset_peak_memory();

/// Gives the kept blocks back, and says how many bytes they were. A new-handler may call it: inside the pool itself, which
/// does that by itself, it does nothing.
Index release_unused_memory();

/// A block of at least `bytes` bytes, aligned to 64; safe to call from any thread. In a build with WEFT_NAN_FILL its
/// content is NaN, otherwise unspecified. Throws weft::Error when memory is out, with the size asked for.
void* pool_allocate(std::size_t bytes);

/// Takes back a block of pool_allocate.
void pool_free(void* block) noexcept;

struct PoolDelete {
  void operator()(real* block) const { pool_free(block); }
};
/// Memory of the pool for as long as a task takes.
using PoolArray = std::unique_ptr<real[], PoolDelete>;

/// Room for that many elements.
inline PoolArray pool_array(Index elements) {
  return PoolArray(static_cast<real*>(pool_allocate(static_cast<std::size_t>(elements) * sizeof(real))));
}

}  // namespace weft

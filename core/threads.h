// The one way in which Weft uses several cores: loops over tiles. The bounds of a tile depend on the problem alone, never
// on the number of threads, so results are the same bits for any number of threads.
#pragma once

#include "weft/core/function_ref.h"
#include "weft/core/types.h"

namespace weft {

/// Sets how many threads parallel_for may use, from now on; 0 for the default, which is the number of cores that the
/// process may run on, or OMP_NUM_THREADS if that is less. Threads that are now too many end, unless a loop is running.
void set_threads(int count);

/// How many threads parallel_for may use.
int threads();

/// Starts the threads of parallel_for now, threads() with the caller, so that what their stacks take of the address space is
/// taken and can be seen; otherwise they start as loops need them. There are fewer if the system gives no more.
void start_threads();

/// Calls body(begin, end) for every tile [0, tile), [tile, 2 tile), … of [0, count), in any order and possibly at the
/// same time. Runs in the calling thread alone if there is one tile, one thread, or if it is already inside a
/// parallel_for. All tiles are rounded as the calling thread rounds. An exception from the body is thrown again here
/// once all tiles have ended.
void parallel_for(Index count, Index tile, FunctionRef<void(Index begin, Index end)> body);

}  // namespace weft

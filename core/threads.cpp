#include "weft/core/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

namespace weft {
namespace {

std::atomic<int> thread_count{0};  // 0: not set, one for each core

}  // namespace

void set_threads(int count) { thread_count = std::max(count, 1); }

int threads() {
  const int count = thread_count;
  return count > 0 ? count : std::clamp(omp_get_max_threads(), 1, std::max(omp_get_num_procs(), 1));
}

void parallel_for(Index count, Index tile, FunctionRef<void(Index, Index)> body) {
  if (count <= 0) return;
  tile = std::max<Index>(tile, 1);
  const Index tiles = (count + tile - 1) / tile;
  const int team = static_cast<int>(std::min<Index>(threads(), tiles));
  if (team <= 1 || omp_in_parallel() != 0) {
    for (Index begin = 0; begin < count; begin += tile) body(begin, std::min(begin + tile, count));
    return;
  }
  std::exception_ptr error;
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
  for (Index t = 0; t < tiles; ++t) {
    try {
      body(t * tile, std::min((t + 1) * tile, count));
    } catch (...) {
#pragma omp critical(weft_parallel_for_error)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace weft

// What the system says of memory: how much this process has, and how much more it may have. Nothing here allocates tensors
// or changes a limit; where the system says nothing, a number is 0 or there is no limit.
#pragma once

#include <filesystem>
#include <string>

#include "weft/core/types.h"

namespace weft {

/// The memory of this process that lies in the machine's memory, in bytes.
struct ResidentMemory {
  Index now = 0;   ///< VmRSS
  Index peak = 0;  ///< VmHWM: the most that it ever was
};
ResidentMemory resident_memory();

/// How much more memory this process may take, and what sets that limit.
struct MemoryRoom {
  Index bytes = 0;
  std::string limit;  ///< in words, such as "free on this machine"
};

/// The least of what is free on the machine (MemAvailable), what control groups leave (v1 and v2, each group above this
/// process), and what the limits RLIMIT_AS and RLIMIT_DATA (ulimit -v and -d) leave once the
/// threads of parallel_for have started. Files are looked up below `root`, for tests.
MemoryRoom memory_room(const std::filesystem::path& root = "/");

}  // namespace weft

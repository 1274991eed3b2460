// Opening what a user names as input, be it a file, a pipe or a device. Nothing here waits for a writer that does not come.
#pragma once

#include <chrono>
#include <filesystem>

namespace weft {

/// How long a named pipe may be without its other end, writer or reader, before it is given up.
inline constexpr std::chrono::milliseconds kPipeWait(1000);

/// Opens a file to read from, as open(2) does: returns a descriptor, or -1 and sets errno. A named pipe is waited for until
/// it has a writer, for kPipeWait at most; throws DataError if none comes.
int open_input(const std::filesystem::path& path);

}  // namespace weft

#include "weft/data/open_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "weft/core/error.h"

namespace weft {
namespace {

/// Whether a pipe that was opened without waiting has, or had, a writer.
bool has_writer(int pipe) {
  pollfd descriptor{pipe, POLLIN, 0};
  if (::poll(&descriptor, 1, static_cast<int>(kPipeWait.count())) > 0)
    return true;  // there is something to read, or its end
  // A writer may be there and not have written yet. Copying from the pipe, which takes nothing out of it, tells: without a
  // writer it is at its end, with one there is nothing yet.
  int copy[2];
  if (::pipe2(copy, O_CLOEXEC) != 0) return true;
  const bool writer = ::tee(pipe, copy[1], 1, SPLICE_F_NONBLOCK) != 0;
  ::close(copy[0]);
  ::close(copy[1]);
  return writer;
}

}  // namespace

int open_input(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return file;
  struct stat status {};
  const bool pipe = ::fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
  if (pipe && !has_writer(file)) {
    ::close(file);
    throw DataError(
        fmt::format("{}: is a pipe that nobody writes to; start its writer first, or name a file", path.string()));
  }
  ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace weft

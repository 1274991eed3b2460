// The system calls of file.cpp and temporary.cpp as a table, so that a test can make any of them fail.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>

namespace weft {

/// One entry for each system call, with the arguments and results of the call of that name; errors come
/// through errno.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*read)(int file, void* to, std::size_t bytes);
  ssize_t (*pread)(int file, void* to, std::size_t bytes, off_t offset);
  ssize_t (*write)(int file, const void* from, std::size_t bytes);
  int (*fsync)(int file);
  int (*close)(int file);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
};

/// Calls again while a signal interrupts. Not for close, after which the descriptor is gone whatever it returns.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// The table in use. A test may change it while no file is open; the default is the system's own calls.
FileCalls& file_calls();

}  // namespace weft

// A library to be preloaded into weft: it has one of the program's calls fail.
//
// FAIL_CALL=malloc|open|write|fsync|close|rename, FAIL_NUMBER=which one, from 0, FAIL_ERROR=its errno, FAIL_REST=1 for all
// that follow too. Calls count from the opening of log.jsonl on, which is where training begins; writes to the standard
// streams do not count. At its end the program puts the number of calls seen into
// the file FAIL_COUNT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static const char* call = "";
static long number = -1;
static int error_number, rest;
static const char first[] = "log.jsonl";
static atomic_int counting;
static atomic_long seen;

__attribute__((constructor)) static void begin(void) {
  const char* text;
  if ((text = getenv("FAIL_CALL"))) call = text;
  if ((text = getenv("FAIL_NUMBER"))) number = atol(text);
  if ((text = getenv("FAIL_ERROR"))) error_number = atoi(text);
  rest = getenv("FAIL_REST") != NULL;
}

__attribute__((destructor)) static void end(void) {
  counting = 0;
  const char* path = getenv("FAIL_COUNT");
  const int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
  if (file < 0) return;
  char line[32];
  const int length = snprintf(line, sizeof line, "%ld\n", (long)seen);
  syscall(SYS_write, file, line, (size_t)length);
  syscall(SYS_close, file);
}

static int fails(const char* name) {
  if (!counting || strcmp(name, call) != 0) return 0;
  const long mine = seen++;
  if (number < 0 || mine < number || (mine > number && !rest)) return 0;
  errno = error_number;
  return 1;
}

void* malloc(size_t size) { return fails("malloc") ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails("malloc") ? NULL : __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return fails("malloc") ? NULL : __libc_realloc(block, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails("malloc") ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  if (fails("malloc")) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const size_t length = strlen(path), end = sizeof first - 1;
  if (length >= end && strcmp(path + length - end, first) == 0) counting = 1;
  if (fails("open")) return -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int file, const void* from, size_t size) {
  if (file <= 2 || !fails("write")) return syscall(SYS_write, file, from, size);
  syscall(SYS_write, file, from, size / 2);  // a part of it is written all the same
  errno = error_number;
  return -1;
}

int fsync(int file) { return fails("fsync") ? -1 : (int)syscall(SYS_fsync, file); }

int close(int file) {
  const long result = syscall(SYS_close, file);
  return fails("close") ? -1 : (int)result;
}

int rename(const char* from, const char* to) {
  return fails("rename") ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

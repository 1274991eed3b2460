#include "weft/core/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/core/temporary.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

/// A folder of its own for one test, and the system's calls back in place afterwards.
class Sandbox : public TemporaryFolder {
 public:
  ~Sandbox() { file_calls() = calls_; }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(path()), fs::directory_iterator()); }
  const FileCalls& calls() const { return calls_; }

 private:
  FileCalls calls_ = file_calls();
};

FileCalls real_calls;
int call_count;    // calls seen so far
int failing_call;  // the one that fails, or at which the process dies

bool now_failing() { return call_count++ == failing_call; }

/// The system's calls, of which the one numbered `failing_call` has `Fault` in its place.
template <int (*Fault)()>
FileCalls faulty_calls() {
  FileCalls calls = real_calls;
  calls.open = [](const char* path, int flags, mode_t mode) {
    return now_failing() ? Fault() : real_calls.open(path, flags, mode);
  };
  calls.write = [](int file, const void* from, std::size_t bytes) {
    // Half of the bytes are gone when it happens.
    if (!now_failing()) return real_calls.write(file, from, bytes);
    (void)!real_calls.write(file, from, bytes / 2);
    return static_cast<ssize_t>(Fault());
  };
  calls.fsync = [](int file) { return now_failing() ? Fault() : real_calls.fsync(file); };
  calls.rename = [](const char* from, const char* to) { return now_failing() ? Fault() : real_calls.rename(from, to); };
  return calls;
}

int disk_full() {
  errno = ENOSPC;
  return -1;
}
int die() { _exit(9); }

const std::string kNew(200000, 'n');
void write_new(const fs::path& path) {
  write_file_atomically(path, [](FileWriter& writer) {
    writer.write(std::string_view(kNew).substr(0, 10));
    writer.write(std::string_view(kNew).substr(10, 150000));
    writer.write(std::string_view(kNew).substr(150010));
  });
}

}  // namespace

TEST_CASE("what is written is read, and nothing else stays in the folder") {
  const Sandbox sandbox;
  for (const std::size_t size : {0u, 1u, 65536u, 65537u, 300001u}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    write_file(sandbox / "a", bytes);
    CHECK(read_file(sandbox / "a") == bytes);
    CHECK(InputFile(sandbox / "a").size() == size);
  }
  write_new(sandbox / "a");
  CHECK(read_file(sandbox / "a") == kNew);
  CHECK(sandbox.files() == 1);
}

TEST_CASE("read_at reads anywhere and says where the file ends") {
  const Sandbox sandbox;
  write_file(sandbox / "a", "0123456789");
  const InputFile file(sandbox / "a");
  std::string some(4, ' ');
  file.read_at(3, std::as_writable_bytes(std::span(some)));
  CHECK(some == "3456");
  CHECK_THROWS_AS(file.read_at(8, std::as_writable_bytes(std::span(some))), DataError);
}

TEST_CASE("short writes and interrupts are carried on from") {
  const Sandbox sandbox;
  real_calls = sandbox.calls();
  call_count = 0;
  file_calls().write = [](int file, const void* from, std::size_t bytes) {
    if (++call_count % 3 == 0) {
      errno = EINTR;
      return ssize_t{-1};
    }
    return real_calls.write(file, from, std::min<std::size_t>(bytes, 9973));
  };
  file_calls().read = [](int file, void* to, std::size_t bytes) {
    return real_calls.read(file, to, std::min<std::size_t>(bytes, 9973));
  };
  write_new(sandbox / "a");
  CHECK(read_file(sandbox / "a") == kNew);
}

TEST_CASE("whichever call fails, the old file stays, the temporary goes, and the error says why") {
  const Sandbox sandbox;
  real_calls = sandbox.calls();
  for (failing_call = 0;; ++failing_call) {
    CAPTURE(failing_call);
    write_file(sandbox / "a", "old");
    call_count = 0;
    file_calls() = faulty_calls<disk_full>();
    const std::string message = thrown_text<Error>([&] { write_new(sandbox / "a"); });
    file_calls() = real_calls;
    if (call_count <= failing_call) break;
    CHECK(contains(message, (sandbox / "a").string() + ": cannot be written: No space left on device ("));
    CHECK(contains(message, "free some space"));
    const bool after_rename = contains(message, "(fsync folder)");
    CHECK(read_file(sandbox / "a") == (after_rename ? kNew : "old"));
    CHECK(sandbox.files() == 1);
  }
  CHECK(failing_call == 8);  // two opens, three writes, two fsyncs, a rename
}

TEST_CASE("a process killed at any call leaves the old file or the new one, and leftovers can be removed") {
  const Sandbox sandbox;
  real_calls = sandbox.calls();
  bool left_something = false;
  int killed = 0;
  for (failing_call = 0; killed == failing_call; ++failing_call) {
    CAPTURE(failing_call);
    write_file(sandbox / "a", "old");
    const pid_t child = fork();
    if (child == 0) {
      call_count = 0;
      file_calls() = faulty_calls<die>();
      write_new(sandbox / "a");
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WEXITSTATUS(status) == 9) ++killed;
    const std::string bytes = read_file(sandbox / "a");
    CHECK((bytes == "old" || bytes == kNew));
    left_something = left_something || sandbox.files() > 1;
    remove_leftovers(sandbox / "a");
    CHECK(sandbox.files() == 1);
  }
  CHECK(killed == 8);
  CHECK(left_something);
}

TEST_CASE("a file that is replaced keeps its permissions") {
  const Sandbox sandbox;
  write_file(sandbox / "a", "old");
  fs::permissions(sandbox / "a", fs::perms::owner_read | fs::perms::owner_write);
  write_file(sandbox / "a", "new");
  CHECK(fs::status(sandbox / "a").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  if (::chown((sandbox / "a").c_str(), 1234, 1234) != 0) return;  // only root may give files away
  write_file(sandbox / "a", "newer");
  struct stat status {};
  REQUIRE(::stat((sandbox / "a").c_str(), &status) == 0);
  CHECK(status.st_uid == 1234);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("remove_leftovers leaves other files alone") {
  const Sandbox sandbox;
  for (const char* name : {"a", "a.tmp", "a.1x.tmp", "a.12.tmp", "b.12.tmp", "a.12"}) {
    put(sandbox / name, name);
  }
  remove_leftovers(sandbox / "a");
  CHECK(sandbox.files() == 5);
  CHECK_FALSE(fs::exists(sandbox / "a.12.tmp"));
  remove_leftovers(sandbox / "");
  CHECK(sandbox.files() == 5);
  fs::create_symlink("b", sandbox / "link");
  put(sandbox / "b", "the file");
  remove_leftovers(sandbox / "link");  // what was written through a link is beside the file
  CHECK_FALSE(fs::exists(sandbox / "b.12.tmp"));
}

TEST_CASE("what killed processes left is removed, but not what a living one writes") {
  const Sandbox sandbox;
  for (const char* name : {"a.12.tmp", "b.12.tmp", "a.1x.tmp", ".12.tmp"}) put(sandbox / name, name);
  const auto is_a = [](std::string_view name) { return name == "a"; };
  write_file_atomically(sandbox / "a", [&](FileWriter& writer) {
    CHECK(sandbox.files() == 5);
    remove_dead_temporaries(sandbox.path(), is_a);
    CHECK(sandbox.files() == 4);
    CHECK_FALSE(fs::exists(sandbox / "a.12.tmp"));
    writer.write("whole");
  });
  CHECK(bytes_of(sandbox / "a") == "whole");
  remove_dead_temporaries(sandbox.path(), is_a);
  remove_dead_temporaries(sandbox / "none", is_a);
  CHECK(sandbox.files() == 4);

  // One that somebody removes before it is locked is made again.
  real_calls = sandbox.calls();
  call_count = 0;
  file_calls().open = [](const char* path, int flags, mode_t mode) {
    const int file = real_calls.open(path, flags, mode);
    if ((flags & O_CREAT) != 0 && call_count++ == 0) ::unlink(path);
    return file;
  };
  write_file(sandbox / "a", "again");
  CHECK(call_count == 2);
  CHECK(bytes_of(sandbox / "a") == "again");
  // And one of a process of the same number elsewhere, which has just renamed it, keeps its content.
  call_count = 0;
  file_calls().open = [](const char* path, int flags, mode_t mode) {
    if ((flags & O_CREAT) != 0 && call_count == 0) put(path, "theirs");
    const int file = real_calls.open(path, flags, mode);
    if ((flags & O_CREAT) != 0 && call_count++ == 0) ::rename(path, (fs::path(path).parent_path() / "theirs").c_str());
    return file;
  };
  write_file(sandbox / "a", "ours");
  CHECK(bytes_of(sandbox / "a") == "ours");
  CHECK(bytes_of(sandbox / "theirs") == "theirs");
}

TEST_CASE("a temporary that a killed process left is not written to: another folder may have it as a file") {
  const Sandbox sandbox;
  put(sandbox / "log of a copy", "its lines");
  fs::create_hard_link(sandbox / "log of a copy", sandbox / ("a." + std::to_string(::getpid()) + ".tmp"));
  write_file(sandbox / "a", "new");
  CHECK(bytes_of(sandbox / "a") == "new");
  CHECK(bytes_of(sandbox / "log of a copy") == "its lines");
  CHECK(sandbox.files() == 2);
}

TEST_CASE("the name of a temporary is left alone once it is renamed: a process of the same number may use it") {
  const Sandbox sandbox;
  real_calls = sandbox.calls();
  file_calls().rename = [](const char* from, const char* to) {
    const int result = real_calls.rename(from, to);
    put(from, "theirs");
    return result;
  };
  write_file(sandbox / "a", "ours");
  CHECK(bytes_of(sandbox / "a") == "ours");
  CHECK(bytes_of(sandbox / ("a." + std::to_string(::getpid()) + ".tmp")) == "theirs");
}

TEST_CASE("a temporary that cannot be looked at, or is removed again and again, is an error and no endless loop") {
  const Sandbox sandbox;
  real_calls = sandbox.calls();
  file_calls().open = [](const char* path, int flags, mode_t mode) {
    const int file = real_calls.open(path, flags, mode);
    if ((flags & O_CREAT) != 0) ::unlink(path);
    return file;
  };
  CHECK_THROWS_SAYING(write_file(sandbox / "a", "x"), "cannot be written: Device or resource busy (open)", Error);
  file_calls().open = [](const char* path, int flags, mode_t mode) {
    const int file = real_calls.open(path, flags, mode);
    if ((flags & O_CREAT) == 0) return file;
    ::unlink(path);
    REQUIRE(::symlink(path, path) == 0);
    return file;
  };
  CHECK_THROWS_SAYING(write_file(sandbox / "a", "x"), "Too many levels of symbolic links (open)", Error);
  CHECK(sandbox.files() == 0);

  file_calls() = real_calls;
  write_file(sandbox / "a", "x");
  fs::create_symlink("loop", sandbox / "loop");
  const int file = ::open((sandbox / "a").c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(is_at(file, sandbox / "a"));
  CHECK_FALSE(is_at(file, sandbox.path()));
  CHECK(errno == 0);
  CHECK_FALSE(is_at(file, sandbox / "none"));
  CHECK(errno == 0);
  CHECK_FALSE(is_at(file, sandbox / "loop"));
  CHECK(errno == ELOOP);
  ::close(file);
}

TEST_CASE("a signal's handler can remove what is being written, as deep as it is nested") {
  const Sandbox sandbox;
  const pid_t child = fork();
  if (child == 0) {
    write_file_atomically(sandbox / "a", [&](FileWriter&) {
      write_file(sandbox / "b", "done");
      write_file_atomically(sandbox / "c", [&](FileWriter&) {
        remove_temporaries();
        _exit(sandbox.files() == 1 ? 0 : 1);
      });
    });
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(bytes_of(sandbox / "b") == "done");
}

TEST_CASE("an exception of the callback passes through and leaves the old file") {
  const Sandbox sandbox;
  write_file(sandbox / "a", "old");
  CHECK_THROWS_AS(write_file_atomically(sandbox / "a",
                                        [](FileWriter& writer) {
                                          writer.write("half");
                                          throw ConfigError("no");
                                        }),
                  ConfigError);
  CHECK(read_file(sandbox / "a") == "old");
  CHECK(sandbox.files() == 1);
}

TEST_CASE("links are followed, devices and folders refused, missing things named") {
  const Sandbox sandbox;
  write_file(sandbox / "a", "old");
  fs::create_symlink("a", sandbox / "link");
  write_file(sandbox / "link", "new");
  CHECK(fs::is_symlink(sandbox / "link"));
  CHECK(read_file(sandbox / "a") == "new");

  fs::create_directory(sandbox / "folder");
  CHECK_THROWS_AS(write_file(sandbox / "folder", "x"), Error);
  CHECK_THROWS_AS(write_file("/dev/null", "x"), Error);
  CHECK_THROWS_SAYING(write_file(sandbox / "none/a", "x"), "create its folder first", Error);

  CHECK_THROWS_SAYING(read_file(sandbox / "none"), "none: cannot be read: No such file", Error);
  CHECK_THROWS_SAYING(read_file(sandbox / "folder"), "folder: cannot be read: Is a directory", Error);
  fs::create_symlink("gone", sandbox / "lost");
  CHECK_THROWS_SAYING(read_file(sandbox / "lost"), "lost: cannot be read: is a link to gone, which", DataError);
  CHECK_THROWS_SAYING(is_there(sandbox / "lost"), "lost: is a link to gone, which leads to nothing", DataError);
  CHECK_FALSE(is_there(sandbox / "none"));
  CHECK_THROWS_AS(InputFile(sandbox / "folder"), DataError);
  CHECK_THROWS_AS(InputFile("/dev/null"), DataError);
}

TEST_CASE("a link that leads to nothing yet is followed when it is written, and named where that cannot be") {
  const Sandbox sandbox;
  fs::create_symlink("other", sandbox / "link");
  fs::create_symlink("link", sandbox / "link of a link");
  write_file(sandbox / "link of a link", "new");
  CHECK(fs::is_symlink(sandbox / "link"));
  CHECK(read_file(sandbox / "other") == "new");
  fs::create_symlink("gone/away", sandbox / "lost");
  CHECK_THROWS_SAYING(write_file(sandbox / "lost", "x"), "lost: cannot be written: is a link to gone/away, which",
                      Error);
  CHECK(fs::is_symlink(sandbox / "lost"));
}

TEST_CASE("that a file cannot be written is found before there is anything to write, and why") {
  const Sandbox sandbox;
  require_can_write(sandbox / "a");
  CHECK(sandbox.files() == 0);
  write_file(sandbox / "a", "old");
  require_can_write(sandbox / "a");
  CHECK(read_file(sandbox / "a") == "old");
  CHECK(sandbox.files() == 1);
  CHECK_THROWS_SAYING(require_can_write(sandbox / std::string(250, 'x')), "choose a shorter name", Error);
  CHECK_THROWS_SAYING(require_can_write(sandbox / "none/a"), "create its folder first", Error);
  file_calls().open = [](const char*, int, mode_t) { return errno = EACCES, -1; };
  CHECK_THROWS_SAYING(require_can_write(sandbox / "a"), "choose a folder that you may write to", Error);
  CHECK_THROWS_SAYING(AppendedFile(sandbox / "a"), "ask for the right to write to it", Error);
  CHECK_THROWS_SAYING(AppendedFile(sandbox / "new"), "choose a folder that you may write to", Error);
}

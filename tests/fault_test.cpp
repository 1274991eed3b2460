// Runs in which a system call or an allocation fails, each in its turn: the error comes out as an exception, the checkpoints
// of before are whole, nothing half written or unreleased is left, and the run goes on to the bytes of one without a fault.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <string>

#include "session.h"
#include "temporary_folder.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/core/memory.h"
#include "weft/core/threads.h"
#include "weft/optim/optimizer.h"
#include "weft/train/checkpoint.h"
#include "weft/train/kept_checkpoints.h"

// All memory of this program, the tensor pool's included, comes from here. While `failing` is not negative, allocations
// count it down, and the one that finds it 0 fails.
namespace {
std::atomic<long> living{0}, failing{-1};

void* taken(std::size_t bytes, std::size_t alignment, bool may_fail = true) noexcept {
  if (may_fail && failing.load() >= 0 && failing.fetch_sub(1) == 0) return nullptr;
  void* block = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (block != nullptr) ++living;
  return block;
}
void* taken_or_thrown(std::size_t bytes, std::size_t alignment) {
  if (void* block = taken(bytes, alignment)) return block;
  throw std::bad_alloc();
}
void give_back(void* block) noexcept {
  if (block != nullptr) --living;
  std::free(block);
}
constexpr std::size_t kPlain = alignof(std::max_align_t);
}  // namespace
[[gnu::noinline]] void* operator new(std::size_t bytes) { return taken_or_thrown(bytes, kPlain); }
// Standard algorithms ask for a buffer like this, and do without one.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return taken(bytes, kPlain, false);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return taken_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return taken(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* block) noexcept { give_back(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { give_back(block); }
[[gnu::noinline]] void operator delete(void* block, const std::nothrow_t&) noexcept { give_back(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { give_back(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }

using namespace weft;
namespace fs = std::filesystem;

namespace {

/// Has the n-th allocation from here on fail, until the end of its life.
class FailingAllocation {
 public:
  explicit FailingAllocation(long n) { failing = n; }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation() { failing = -1; }
  /// Whether there were so many.
  static bool happened() { return failing < 0; }
};

FileCalls real_calls;
int call_count, failing_call, failing_error;  // calls so far, the one that fails, and how; no call if negative

bool now_failing() { return call_count++ == failing_call; }

int failed() {
  errno = failing_error;
  return -1;
}

/// Does without waiting for the disk, which no test here can see, in this whole program.
const bool no_waiting = [] {
  file_calls().fsync = [](int) { return 0; };
  return true;
}();

/// The system's calls, of which one fails.
FileCalls faulty_calls() {
  FileCalls calls = real_calls;
  calls.open = [](const char* path, int flags, mode_t mode) {
    return now_failing() ? failed() : real_calls.open(path, flags, mode);
  };
  calls.pread = [](int file, void* to, std::size_t bytes, off_t offset) {
    return now_failing() ? failed() : real_calls.pread(file, to, bytes, offset);
  };
  calls.read = [](int file, void* to, std::size_t bytes) {
    return now_failing() ? failed() : real_calls.read(file, to, bytes);
  };
  calls.write = [](int file, const void* from, std::size_t bytes) {
    if (!now_failing()) return real_calls.write(file, from, bytes);
    if (failing_error == 0) return real_calls.write(file, from, (bytes + 1) / 2);  // short, but no error
    if (failing_error != EINTR) (void)!real_calls.write(file, from, bytes / 2);
    return ssize_t{failed()};
  };
  calls.fsync = [](int file) { return now_failing() ? failed() : real_calls.fsync(file); };
  calls.close = [](int file) {
    real_calls.close(file);  // which it does, whatever it returns
    return now_failing() ? failed() : 0;
  };
  calls.rename = [](const char* from, const char* to) {
    return now_failing() ? failed() : real_calls.rename(from, to);
  };
  return calls;
}

/// Has call `n` fail with `error`, until the end of its life.
class FailingCall {
 public:
  FailingCall(int n, int error) {
    real_calls = file_calls();
    call_count = 0;
    failing_call = n;
    failing_error = error;
    file_calls() = faulty_calls();
  }
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall() { file_calls() = real_calls; }
  static bool happened() { return call_count > failing_call; }
};

/// The lowest descriptor that is free: it rises when one is never closed.
int lowest_descriptor() {
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(file);
  return file;
}

/// The text of the error that `run` throws; nothing if it throws none. Other exceptions than the command line knows how to
/// report end the test.
template <class Run>
std::optional<std::string> error_of(Run run) {
  try {
    run();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::system_error& error) {  // of std::filesystem
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    files[name] = name == "log.jsonl" ? log_without_times(folder) : bytes_of(entry.path());
  }
  return files;
}

/// A run of a few updates with all that its state consists of.
const Config& small_run() {
  static const Config config =
      tiny_config({"model.d_model=8", "model.d_feed_forward=8", "training.steps=5", "training.validate_every=2",
                   "training.save_every=1", "training.log_every=2", "training.accumulate=2", "training.ema_decay=0.9",
                   "training.keep_best=2", "training.keep_last=1", "training.batch_tokens=60"});
  return config;
}

TrainingEnd train_in(const fs::path& folder) {
  return Session(folder, small_run(), letters(12, 5), letters(2, 6)).finish();
}

/// What a run that nothing disturbs leaves.
const std::map<std::string, std::string>& undisturbed() {
  static const auto files = [] {
    const TemporaryFolder folder;
    train_in(folder.path());
    return contents(folder.path());
  }();
  return files;
}

/// Trains in a folder under a fault, checks what that leaves, and goes on without one; `Fault` has a static happened().
/// Returns whether the fault came to pass.
template <class Fault, class... Args>
bool survives(bool ends, Args... args) {
  const TemporaryFolder folder;
  const int descriptor = lowest_descriptor();
  const Index tensors = memory_statistics().current_bytes;
  bool happened = false;
  std::optional<std::string> error;
  {
    const Fault fault(args...);
    error = error_of([&] { train_in(folder.path()); });
    happened = Fault::happened();
  }
  if (ends && happened) CHECK(error.has_value());
  if (!happened) CHECK_FALSE(error.has_value());
  if (error) CAPTURE(*error);
  if (error) CHECK_FALSE(contains(*error, "\n"));
  CHECK(lowest_descriptor() == descriptor);
  CHECK(memory_statistics().current_bytes == tensors);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    CHECK_FALSE(name.ends_with(".tmp"));
    if (name.ends_with(".safetensors")) CHECK_NOTHROW(load_checkpoint(entry.path(), standard_layers()));
  }
  train_in(folder.path());
  // The command line does this before it goes on.
  const auto state = load_checkpoint(folder / "last.safetensors", standard_layers()).state;
  remove_step_checkpoints(folder.path(), kept_steps(state.validations, small_run().training));
  CHECK(contents(folder.path()) == undisturbed());
  return happened;
}

}  // namespace

TEST_CASE("whichever allocation fails while a checkpoint is saved, the old one stays and nothing is left") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config());
  const auto optimizer = make_optimizer({}, model->parameters().values().size());
  const Tensor values = model->parameters().values();
  TrainingState state{.validations = {{7, 1, 2, 3, 4, 5, 6}}};
  const auto save = [&](Index step) {
    state.step = step;
    save_checkpoint(folder / "a.safetensors", *model, state, optimizer.get(), values.values());
  };
  save(2);
  const std::string other = bytes_of(folder / "a.safetensors");
  save(1);
  const std::string old = bytes_of(folder / "a.safetensors");
  REQUIRE(other != old);
  const int descriptor = lowest_descriptor();
  long n = 0;
  for (bool happened = true; happened; ++n) {
    CAPTURE(n);
    bool thrown = false;
    const long before = living;
    {
      const FailingAllocation fault(n);
      thrown = error_of([&] { save(2); }).has_value();
      happened = FailingAllocation::happened();
    }
    const long after = living;
    CHECK(after == before);
    CHECK(thrown == happened);
    CHECK(lowest_descriptor() == descriptor);
    CHECK(bytes_of(folder / "a.safetensors") == (happened ? old : other));
    CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  }
  CHECK(n > 100);
}

TEST_CASE(
    "whichever system call of a run fails, and however, its checkpoints stay whole and it goes on to the same bytes") {
  set_threads(1);
  REQUIRE(undisturbed().count("best.safetensors") == 1);
  const int errors[] = {ENOSPC, EIO, EDQUOT, EFBIG, EROFS, EINTR, 0};
  int n = 0;
  while (true) {
    CAPTURE(n);
    const int error = errors[n % 7];
    CAPTURE(error);
    // What is closed without need, interrupted or written short is no failure.
    if (!survives<FailingCall>(false, n, error)) break;
    ++n;
  }
  CHECK(n > 50);
}

TEST_CASE("an allocation that fails anywhere in a run leaves its checkpoints whole, and it goes on to the same bytes") {
  set_threads(1);
  undisturbed();
  long all = 0;
  {
    const TemporaryFolder folder;
    constexpr long kMany = 1L << 40;
    const FailingAllocation counter(kMany);
    train_in(folder.path());
    all = kMany - failing;
  }
  CHECK(all > 1000);
  constexpr long kTimes = 60;
  for (long i = 0; i < kTimes; ++i) {
    const long n = all * i / kTimes + i;
    CAPTURE(n);
    survives<FailingAllocation>(true, n);
  }
}

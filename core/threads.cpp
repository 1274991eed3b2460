// A pool of threads that help with one loop at a time. The caller works too and waits for tiles, never for threads: a
// helper that gets no processor (a busy machine) takes no tile and delays nobody. That is why it is not an OpenMP loop,
// whose every end waits for all threads to arrive.
//
// Each thread begins with a share of the tiles of its own, always the same part of the loop, and then helps with the shares
// of others: what a core has written in one loop it most likely reads in the next, out of its own caches.
#include "weft/core/threads.h"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/core/omp_threads.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace weft {
namespace {

/// The processors that this process may run on, or OMP_NUM_THREADS if that is less.
int default_threads() {
  cpu_set_t set;
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(std::min(count, omp_threads().value_or(count)), 1);
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

#ifdef __SSE__
/// How the calling thread rounds, and whether it takes tiny numbers for 0.
unsigned float_mode() {
  constexpr unsigned kHappened = 0x3F;  // flags of what came up
  return _mm_getcsr() & ~kHappened;
}
void set_float_mode(unsigned mode) { _mm_setcsr(mode); }
#else
int float_mode() { return std::fegetround(); }
void set_float_mode(int mode) { std::fesetround(mode); }
#endif

/// Has all threads share one heap where the address space is limited (ulimit -v): for each thread's own the C library of GNU
/// would reserve 64 MiB of it, at some time or other, and never use the most of them.
void share_one_heap() {
#ifdef M_ARENA_MAX
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
#endif
}

/// Spins for some tens of microseconds; returns whether `done` became true.
template <class Done>
bool spin_until(Done done) {
  for (int i = 0; i < 2000; ++i) {
    if (done()) return true;
    pause();
  }
  return done();
}

thread_local bool in_loop = false;  // this thread is working on a tile

class Pool {
  static constexpr std::size_t kMostShares = 32;  // more threads have the same ones

  /// Tiles of a share that nobody has taken.
  struct alignas(64) Share {
    std::atomic<std::uint32_t> tiles{0};
  };

 public:
  ~Pool() { end_threads(0); }

  /// Makes `helpers` other threads now.
  void start(int helpers) {
    const std::scoped_lock lock(one_loop_);
    add_threads(helpers);
  }

  /// Ends the threads that are more than `helpers`, unless the pool is busy.
  void keep(int helpers) {
    const std::unique_lock lock(one_loop_, std::try_to_lock);
    if (lock) end_threads(helpers);
  }

  /// Runs a loop with up to `helpers` other threads, or returns false if the pool is busy with another thread's loop.
  bool run(Index count, Index tile, Index tiles, int helpers, FunctionRef<void(Index, Index)> body) {
    const std::unique_lock lock(one_loop_, std::try_to_lock);
    if (!lock) return false;
    add_threads(helpers);
    helpers_.store(helpers, std::memory_order_relaxed);
    body_ = &body;
    count_ = count;
    tile_ = tile;
    tiles_ = tiles;
    float_mode_ = float_mode();
    error_ = nullptr;
    finished_.store(0, std::memory_order_relaxed);
    shares_ = std::min<Index>(helpers + 1, kMostShares);
    // A thread that takes a tile of a share knows that the loop cannot end, nor its description change, before that tile is
    // done; the description is complete before the first share is open.
    for (Index i = 0; i < shares_; ++i) {
      open_[static_cast<std::size_t>(i)].tiles.store(static_cast<std::uint32_t>(share_begin(i + 1) - share_begin(i)),
                                                     std::memory_order_release);
    }
    wake();
    in_loop = true;
    work(0);
    in_loop = false;
    const auto all = static_cast<std::uint32_t>(tiles);
    if (!spin_until([&] { return finished_.load(std::memory_order_acquire) == all; })) {
      for (std::uint32_t done; (done = finished_.load(std::memory_order_acquire)) != all;) finished_.wait(done);
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  void add_threads(int helpers) {
    if (threads_.empty()) share_one_heap();
    most_ = std::max(helpers, most_.load());
    try {
      for (int number = static_cast<int>(threads_.size()); number < helpers; ++number) {
        threads_.emplace_back([this, number] { help(number); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those that are there will do.
    }
  }

  void end_threads(int kept) {
    if (static_cast<int>(threads_.size()) <= kept) return;
    most_ = kept;
    wake();
    for (; static_cast<int>(threads_.size()) > kept; threads_.pop_back()) threads_.back().join();
  }

  void wake() {
    wakes_.fetch_add(1, std::memory_order_release);
    wakes_.notify_all();
  }

  /// The first tile of a share; shares are equal but for one tile.
  Index share_begin(Index share) const { return share * tiles_ / shares_; }

  /// Takes tiles until none is left, first those of share `own`.
  void work(std::size_t own) {
    for (std::size_t i = 0; i < kMostShares; ++i) {
      const std::size_t share = (own + i) % kMostShares;
      std::atomic<std::uint32_t>& left = open_[share].tiles;
      std::uint32_t open = left.load(std::memory_order_acquire);
      while (open != 0) {
        if (!left.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
        do_tile(share_begin(static_cast<Index>(share) + 1) - static_cast<Index>(open));
        open = left.load(std::memory_order_acquire);
      }
    }
  }

  void do_tile(Index tile) {
    const auto tiles = static_cast<std::uint32_t>(tiles_);
    const Index begin = tile * tile_;
    if (float_mode() != float_mode_) set_float_mode(float_mode_);
    try {
      (*body_)(begin, std::min(begin + tile_, count_));
    } catch (...) {
      const std::scoped_lock lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == tiles) finished_.notify_one();
  }

  void help(int number) {
    in_loop = true;
    std::uint32_t seen = wakes_.load(std::memory_order_acquire);
    while (number < most_) {
      if (number < helpers_.load(std::memory_order_relaxed)) work(static_cast<std::size_t>(number + 1) % kMostShares);
      if (!spin_until([&] { return wakes_.load(std::memory_order_acquire) != seen; })) wakes_.wait(seen);
      seen = wakes_.load(std::memory_order_acquire);
    }
  }

  std::mutex one_loop_;
  std::vector<std::thread> threads_;
  std::atomic<int> most_{0};  // threads with this number and above end
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<int> helpers_{0};
  std::array<Share, kMostShares> open_;
  std::atomic<std::uint32_t> finished_{0};
  // The loop at work; read only by a thread that has taken one of its tiles.
  Index shares_ = 1;
  const FunctionRef<void(Index, Index)>* body_ = nullptr;
  Index count_ = 0, tile_ = 0, tiles_ = 0;
  decltype(float_mode()) float_mode_ = {};  // of the thread whose loop it is
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

Pool& pool() {
  static Pool the_pool;
  return the_pool;
}

std::atomic<int> thread_count{0};  // 0: not set

}  // namespace

void set_threads(int count) {
  thread_count = std::max(count, 0);
  if (!in_loop) pool().keep(threads() - 1);
}

int threads() {
  static const int by_default = default_threads();
  const int count = thread_count;
  return count > 0 ? count : by_default;
}

void start_threads() {
  if (threads() > 1 && !in_loop) pool().start(threads() - 1);
}

void parallel_for(Index count, Index tile, FunctionRef<void(Index, Index)> body) {
  if (count <= 0) return;
  tile = std::max({tile, Index{1}, (count - 1) / 0x7FFFFFFF + 1});  // the number of tiles fits into 31 bits
  const Index tiles = (count + tile - 1) / tile;
  const int team = static_cast<int>(std::min<Index>(threads(), tiles));
  if (team > 1 && !in_loop && pool().run(count, tile, tiles, team - 1, body)) return;
  for (Index begin = 0; begin < count; begin += tile) body(begin, std::min(begin + tile, count));
}

}  // namespace weft

#include "weft/core/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "weft/core/memory_slabs.h"
#include "weft/core/out_of_memory.h"

namespace weft {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallest = 256;    // bytes of size class 0
constexpr std::size_t kClasses = 4 * 40;  // four for each power of two

/// Stands before each block, in a space of kAlignment bytes.
struct Header {
  std::size_t size_class;  // by which it goes back to a slab, too
  std::size_t bytes;
  std::size_t taken;  // bytes of the class that was asked for, which may be smaller
  Header* next;       // in the list of kept blocks
};

std::size_t class_bytes(std::size_t size_class) { return (kSmallest << (size_class / 4)) / 4 * (4 + size_class % 4); }

/// The smallest class of at least `bytes`: four classes for each power of two, so at most a fifth is wasted.
std::size_t class_of(std::size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const auto power = static_cast<std::size_t>(std::bit_width(bytes - 1) - 1);  // 2^power < bytes <= 2^(power + 1)
  const std::size_t quarter = (std::size_t{1} << power) / 4;
  const std::size_t quarters = (bytes + quarter - 1) / quarter;  // 5 to 8
  return (power - 8) * 4 + (quarters - 4);
}

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ADDRESS_SANITIZER  // of g++
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ADDRESS_SANITIZER  // of Clang
#endif
#endif
#ifdef WEFT_ADDRESS_SANITIZER
constexpr bool kHeap = true;  // the sanitizer looks after the heap alone
#else
constexpr bool kHeap = false;
#endif

/// Pages of the system for a large block, to which it then goes back. The largest lie in pages of 2 MiB where the system
/// has them, which spares the CPU much looking up of addresses. What does not fill such a page stays in small ones, of
/// which only those in use take memory.
void* map_block(std::size_t bytes) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  if (bytes < 2 * kLargePage) {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? nullptr : mapped;
  }
  char* const block = map_aligned(bytes, kLargePage);
#ifdef MADV_HUGEPAGE
  // A wish: without it all works as well.
  if (block != nullptr) ::madvise(block, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return block;
}

class Pool {
 public:
  void* allocate(std::size_t bytes) {
    const std::size_t size_class = class_of(bytes);
    if (size_class >= kClasses) fail(bytes);
    const std::size_t size = class_bytes(size_class);
    std::unique_lock lock(mutex_);
    Header* header = take_kept(size_class);
    const Index needed = std::max(most_needed_, statistics_.current_bytes + static_cast<Index>(size));
    if (header == nullptr) {
      // Batches of ever other shapes would leave ever more blocks that fit nothing.
      release_kept(most_reserved(needed) - static_cast<Index>(size));
      inside_ = true;  // throws nothing
      header = static_cast<Header*>(take_from_system(size_class, size + kAlignment));
      if (header == nullptr) {
        release_kept(0);
        header = static_cast<Header*>(take_from_system(size_class, size + kAlignment));
      }
      inside_ = false;
      if (header == nullptr) {
        lock.unlock();  // the error is a text, whose memory may have to come from here
        fail(bytes);
      }
      header->size_class = size_class;
      header->bytes = size;
      statistics_.reserved_bytes += static_cast<Index>(size);
      ++statistics_.heap_allocations;
    }
    most_needed_ = needed;
    header->taken = size;  // counted as asked for, so that the sum does not depend on which blocks happen to be kept
    statistics_.current_bytes += static_cast<Index>(size);
    statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.current_bytes);
    return reinterpret_cast<char*>(header) + kAlignment;
  }

  void free(void* block) noexcept {
    auto* header = reinterpret_cast<Header*>(static_cast<char*>(block) - kAlignment);
    const std::scoped_lock lock(mutex_);
    header->next = kept_[header->size_class];
    kept_[header->size_class] = header;
    statistics_.current_bytes -= static_cast<Index>(header->taken);
  }

  Index release() {
    if (inside_) return 0;
    const std::scoped_lock lock(mutex_);
    const Index before = statistics_.reserved_bytes;
    release_kept(0);
    most_needed_ = statistics_.current_bytes;
    return before - statistics_.reserved_bytes;
  }

  MemoryStatistics statistics() {
    const std::scoped_lock lock(mutex_);
    return statistics_;
  }

  void reset_peak() {
    const std::scoped_lock lock(mutex_);
    statistics_.peak_bytes = statistics_.current_bytes;
  }

 private:
  void* take_from_system(std::size_t size_class, std::size_t bytes) {
    if (kHeap) return ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
    return bytes <= Slabs::kMost ? slabs_.take(size_class, bytes) : map_block(bytes);
  }

  void give_to_system(void* block, std::size_t size_class, std::size_t bytes) {
    if (kHeap) {
      ::operator delete (block, std::align_val_t{kAlignment});
    } else if (bytes <= Slabs::kMost) {
      slabs_.give(block, size_class, bytes);
    } else {
      ::munmap(block, bytes);
    }
  }

  /// Gives back kept blocks, the largest first, until no more than `most` bytes are reserved.
  void release_kept(Index most) {
    for (std::size_t i = kClasses; i-- > 0;) {
      while (kept_[i] != nullptr && statistics_.reserved_bytes > most) {
        Header* const header = std::exchange(kept_[i], kept_[i]->next);
        statistics_.reserved_bytes -= static_cast<Index>(header->bytes);
        give_to_system(header, header->size_class, header->bytes + kAlignment);
      }
    }
  }

  /// A kept block of that class, or one that is up to half again as large; null if there is none.
  Header* take_kept(std::size_t size_class) {
    constexpr std::size_t kLarger = 2;
    for (std::size_t i = size_class; i <= std::min(size_class + kLarger, kClasses - 1); ++i) {
      Header* header = kept_[i];
      if (header == nullptr) continue;
      kept_[i] = header->next;
      return header;
    }
    return nullptr;
  }

  [[noreturn]] static void fail(std::size_t bytes) {
    throw OutOfMemory(fmt::format(
        "out of memory: cannot allocate {} bytes for a tensor; use smaller batches or a smaller model", bytes));
  }

  static thread_local bool inside_;  // whether this thread holds the mutex while a new-handler may be called
  std::mutex mutex_;
  Slabs slabs_;
  std::array<Header*, kClasses> kept_{};
  MemoryStatistics statistics_;
  Index most_needed_ = 0;  // handed out at one time, ever
};

thread_local bool Pool::inside_ = false;

/// Never destroyed: tensors of static storage may outlive any other order of destruction.
Pool& pool() {
  static Pool& the_pool = *new Pool;
  return the_pool;
}

}  // namespace

MemoryStatistics memory_statistics() { return pool().statistics(); }
void reset_peak_memory() { pool().reset_peak(); }
Index release_unused_memory() { return pool().release(); }

void* pool_allocate(std::size_t bytes) {
  void* block = pool().allocate(bytes);
#ifdef WEFT_NAN_FILL
  std::fill_n(static_cast<real*>(block), bytes / sizeof(real), std::numeric_limits<real>::quiet_NaN());
#endif
  return block;
}

void pool_free(void* block) noexcept { pool().free(block); }

}  // namespace weft

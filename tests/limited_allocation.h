// Lets large allocations of a test program fail. All memory of the program that includes this comes from here, so one of
// its source files alone may do so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace weft {

inline std::atomic<std::size_t> largest_allocation{std::numeric_limits<std::size_t>::max()};

/// Has allocations of more than some bytes fail, until the end of its life.
class LimitedAllocation {
 public:
  explicit LimitedAllocation(std::size_t bytes) { largest_allocation = bytes; }
  LimitedAllocation(const LimitedAllocation&) = delete;
  LimitedAllocation& operator=(const LimitedAllocation&) = delete;
  ~LimitedAllocation() { largest_allocation = std::numeric_limits<std::size_t>::max(); }
};

inline void* taken(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes > largest_allocation) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

inline void* taken_or_thrown(std::size_t bytes, std::size_t alignment) {
  if (void* block = taken(bytes, alignment)) return block;
  throw std::bad_alloc();
}

}  // namespace weft

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return weft::taken_or_thrown(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return weft::taken(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return weft::taken_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return weft::taken(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

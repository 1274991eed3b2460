#include "weft/core/memory_slabs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

namespace weft {
namespace {

constexpr std::size_t kAtOnce = 128 * 1024, kFirst = 64;  // bytes of a slab, and of what stands before its blocks

}  // namespace

char* map_aligned(std::size_t bytes, std::size_t alignment) {
  void* const mapped = ::mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(mapped);
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(first) % alignment) % alignment;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)),
                    end = (before + bytes + page - 1) / page * page;
  if (before > 0) ::munmap(first, before);
  if (end < bytes + alignment) ::munmap(first + end, bytes + alignment - end);
  return first + before;
}

struct Slabs::Slab {
  Slab *next = nullptr, *before = nullptr;  // of those that have room
  void* free = nullptr;                     // block that was given back, each of which begins with the next
  std::size_t end = kFirst;                 // of the blocks that were ever taken
  std::size_t used = 0;                     // blocks

  bool is_full(std::size_t bytes) const { return free == nullptr && end + bytes > kAtOnce; }
};

void Slabs::link(Slab& slab, std::size_t size) {
  slab.before = nullptr;
  slab.next = open_[size];
  if (slab.next != nullptr) slab.next->before = &slab;
  open_[size] = &slab;
}

void Slabs::unlink(Slab& slab, std::size_t size) {
  (slab.before == nullptr ? open_[size] : slab.before->next) = slab.next;
  if (slab.next != nullptr) slab.next->before = slab.before;
}

void* Slabs::take(std::size_t size, std::size_t bytes) {
  static_assert(sizeof(Slab) <= kFirst && kMost + kFirst <= kAtOnce);
  if (open_[size] == nullptr) {
    char* const pages = map_aligned(kAtOnce, kAtOnce);
    if (pages == nullptr) return nullptr;
    link(*new (pages) Slab, size);
  }
  Slab& slab = *open_[size];
  void* const block = slab.free != nullptr ? slab.free : reinterpret_cast<char*>(&slab) + slab.end;
  if (slab.free != nullptr) {
    slab.free = *static_cast<void**>(block);
  } else {
    slab.end += bytes;
  }
  ++slab.used;
  if (slab.is_full(bytes)) unlink(slab, size);
  return block;
}

void Slabs::give(void* block, std::size_t size, std::size_t bytes) {
  const std::uintptr_t inside = reinterpret_cast<std::uintptr_t>(block) % kAtOnce;
  Slab& slab = *reinterpret_cast<Slab*>(static_cast<char*>(block) - inside);
  if (slab.is_full(bytes)) link(slab, size);
  slab.free = new (block) void*(slab.free);
  if (--slab.used > 0) return;
  unlink(slab, size);
  ::munmap(&slab, kAtOnce);
}

}  // namespace weft

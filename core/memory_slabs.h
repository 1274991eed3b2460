// Small blocks for the pool of tensor memory: many of one size lie in a slab, which goes back to the system when all of it
// is free. The heap would keep what was freed in pieces, which in a model of many layers of small tensors are half as much
// again as what is used.
#pragma once

#include <array>
#include <cstddef>

namespace weft {

/// Pages of the system, the first at an address that `alignment`, a power of two and more than a page, divides; null if
/// there are none.
char* map_aligned(std::size_t bytes, std::size_t alignment);

/// Not safe to call from several threads at a time.
class Slabs {
 public:
  static constexpr std::size_t kMost = 32 * 1024;  ///< bytes of a block
  static constexpr std::size_t kSizes = 32;        ///< how many sizes of blocks there may be

  /// A block of that many bytes, a multiple of 64 and the same for ever the same `size`; aligned to 64. Null if memory is
  /// out.
  void* take(std::size_t size, std::size_t bytes);

  /// Takes back a block of take() with these arguments.
  void give(void* block, std::size_t size, std::size_t bytes);

 private:
  struct Slab;

  void link(Slab& slab, std::size_t size);
  void unlink(Slab& slab, std::size_t size);

  std::array<Slab*, kSizes> open_{};  // those that have room
};

}  // namespace weft

// One 64-bit hash of bytes, the same on every machine, by which lines and files are told apart without being kept.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

/// Mixes a number into a hash so that every bit of either changes about half of the bits of the result (the finaliser of
/// Appleby's MurmurHash3, public domain).
constexpr std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t number) {
  hash ^= number + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

/// The hash of some bytes; 64-bit FNV-1a, mixed. `hash` is that of what went before.
constexpr std::uint64_t text_hash(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix_hash(hash, bytes.size());
}

}  // namespace weft

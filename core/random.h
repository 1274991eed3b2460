// Random numbers that are addressed, not consumed: each is a pure function of (seed, step, site, element), so nothing
// is stored in a checkpoint, nothing is replayed on resume, and backward recomputes the mask that forward used.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

/// What Philox4x32 multiplies by, and what its key's words grow by from round to round.
constexpr std::uint32_t kPhiloxFactors[2] = {0xD2511F53u, 0xCD9E8D57u}, kPhiloxSteps[2] = {0x9E3779B9u, 0xBB67AE85u};

/// Philox4x32, a counter-based generator: four 32-bit words for each 128-bit counter and 64-bit key. By default with the
/// ten rounds of Philox4x32-10. Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
template <int kRounds = 10>
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxFactors[0]} * counter[0];
    const std::uint64_t p1 = std::uint64_t{kPhiloxFactors[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kPhiloxSteps[0];
    k1 += kPhiloxSteps[1];
  }
  return counter;
}

/// The random numbers of one forward pass: those of `seed` at training step `step`.
struct RandomStream {
  std::uint64_t seed = 1;
  std::uint64_t step = 0;
};

/// A place that draws numbers, so that two dropout layers never share a mask. 64-bit FNV-1a of the name.
constexpr std::uint64_t random_site(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// A generator that is consumed in order, for work that has an order of its own (shuffling, toy text). The same values
/// on every machine, which the distributions of <random> do not promise.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  /// A 64-bit word, all values equally likely.
  std::uint64_t next() {
    const auto words = philox({static_cast<std::uint32_t>(count_), static_cast<std::uint32_t>(count_ >> 32),
                               static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                              seed_);
    ++count_;
    return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  }

  /// A whole number from 0 to bound - 1, without bias; bound is at least 1.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % bound;
    std::uint64_t word = next();
    while (word >= limit) word = next();
    return word % bound;
  }

  /// A number in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Puts the items of a random-access container into an order that depends on the generator alone.
  template <class Items>
  void shuffle(Items& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      using std::swap;
      swap(items[i - 1], items[static_cast<std::size_t>(below(i))]);
    }
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t count_ = 0;
};

}  // namespace weft

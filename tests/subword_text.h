// Made-up sentences of words that share their syllables, so that subwords have something to find.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/core/types.h"
#include "weft/data/parallel_text.h"

namespace weft {

/// Pairs of `shortest` to `longest` words; the target is the source with each word's syllables in the opposite order.
inline ParallelText syllables(Index pairs, std::uint64_t seed, std::uint64_t shortest = 1, std::uint64_t longest = 6) {
  constexpr std::array kSyllables = {"ka",
                                     "lo",
                                     "mi",
                                     "ten",
                                     "sur",
                                     "ba",
                                     "pli",
                                     "gro",
                                     "n\xC3\xA9",
                                     "\xC5\xBE"
                                     "u"};
  ParallelText text;
  Random random(seed);
  for (Index i = 0; i < pairs; ++i) {
    std::string source, target;
    for (std::uint64_t words = shortest + random.below(longest - shortest + 1); words > 0; --words) {
      std::string word, reversed;
      for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
        // The product makes some syllables rare.
        const std::string syllable = kSyllables[random.below(kSyllables.size()) * random.below(kSyllables.size()) / 10];
        word += syllable;
        reversed.insert(0, syllable);
      }
      source += (source.empty() ? "" : " ") + word;
      target += (target.empty() ? "" : " ") + reversed;
    }
    text.source.push_back(source);
    text.target.push_back(target);
  }
  return text;
}

}  // namespace weft

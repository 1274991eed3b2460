// The n-grams that lines of text share, which is what scores are made of: characters and words alike, as numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/core/types.h"

namespace weft {

using Symbols = std::u32string;  ///< the characters of a line, or its words by their numbers

/// Numbers words in the order in which they come: the same word has the same number.
class WordNumbers {
 public:
  char32_t operator()(std::string_view word) {
    return numbers_.try_emplace(std::string(word), static_cast<char32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, char32_t> numbers_;
};

/// The n-grams of a line, of up to a number of symbols, in order. Takes 8 bytes a symbol.
class SortedNgrams {
 public:
  /// Sorts the n-grams of up to `longest` symbols. There are fewer than 2^32 symbols.
  SortedNgrams(Symbols symbols, std::size_t longest);

  /// How many symbols there are.
  Index symbols() const { return static_cast<Index>(symbols_.size()); }
  /// How many n-grams of n >= 1 symbols there are.
  Index count(std::size_t n) const { return std::max<Index>(symbols() - static_cast<Index>(n) + 1, 0); }

  /// How many n-grams of 1, 2, ... `longest` symbols are in other lines as well: each as often as it is here, at most
  /// as often as it is in the one that has it most often. The others have the same `longest`.
  std::vector<Index> shared_with(std::span<const SortedNgrams> others) const;

 private:
  /// What stands at a place of the order: `longest` symbols, or fewer at the end of the line.
  std::u32string_view at(std::size_t place) const {
    return std::u32string_view(symbols_).substr(places_[place], longest_);
  }

  Symbols symbols_;
  std::size_t longest_;
  std::vector<std::uint32_t> places_;  // places of the line, in the order of what stands there
};

}  // namespace weft

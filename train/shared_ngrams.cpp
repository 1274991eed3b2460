// What stands at each place of a line, `longest` symbols of it, is sorted: the beginnings of n symbols of those that are
// so long are the line's n-grams of n symbols, in order too. One walk through all lines at once then meets equal n-grams
// of any length one after another.
#include "weft/train/shared_ngrams.h"

#include <numeric>
#include <utility>

namespace weft {

SortedNgrams::SortedNgrams(Symbols symbols, std::size_t longest)
    : symbols_(std::move(symbols)), longest_(longest), places_(symbols_.size()) {
  std::iota(places_.begin(), places_.end(), 0u);
  const std::u32string_view all = symbols_;
  std::sort(places_.begin(), places_.end(), [all, longest](std::size_t a, std::size_t b) {
    const std::size_t n = std::min(longest, all.size() - std::max(a, b));
    for (const std::size_t end = a + n; a < end; ++a, ++b) {
      if (all[a] != all[b]) return all[a] < all[b];
    }
    return n < longest && a > b;  // of two that are equal up to the line's end, the one that ends comes first
  });
}

std::vector<Index> SortedNgrams::shared_with(std::span<const SortedNgrams> others) const {
  std::vector<Index> shared(longest_, 0);
  struct Walk {
    const SortedNgrams& line;
    std::vector<Index> times;  // of the n-grams of 1, 2, ... symbols that the walk is at
    std::size_t reached = 0;
  };
  std::vector<Walk> walks{{*this, shared}};
  for (const SortedNgrams& other : others) walks.push_back({other, shared});

  std::u32string_view last;
  const auto leave = [&](std::size_t same) {  // the n-grams of more symbols than that
    for (std::size_t n = same; n < last.size(); ++n) {
      Index most = 0;
      for (std::size_t i = 1; i < walks.size(); ++i) most = std::max(most, std::exchange(walks[i].times[n], 0));
      shared[n] += std::min(std::exchange(walks[0].times[n], 0), most);
    }
  };
  while (true) {
    Walk* next = nullptr;
    std::u32string_view first;
    for (Walk& walk : walks) {
      if (walk.reached == walk.line.places_.size()) continue;
      const std::u32string_view here = walk.line.at(walk.reached);
      if (next != nullptr && here >= first) continue;
      next = &walk;
      first = here;
    }
    if (next == nullptr) break;
    const auto differs = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first;
    leave(static_cast<std::size_t>(differs - first.begin()));
    for (std::size_t n = 0; n < first.size(); ++n) ++next->times[n];
    last = first;
    ++next->reached;
  }
  leave(0);
  return shared;
}

}  // namespace weft

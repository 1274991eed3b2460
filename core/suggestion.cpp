#include "weft/core/suggestion.h"

#include <algorithm>
#include <utility>

namespace weft {

std::size_t edit_distance(std::string_view typed, std::string_view word) {
  if (typed.size() >= 3 && typed.size() < word.size() && word.substr(0, typed.size()) == typed) return 1;
  std::vector<std::size_t> row(word.size() + 1);
  for (std::size_t j = 0; j <= word.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= typed.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= word.size(); ++j) {
      const std::size_t replaced = diagonal + (typed[i - 1] == word[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

Nearest::Nearest(std::string_view typed)
    : limit_(typed.size() < 4 ? 2 : std::max<std::size_t>(typed.size() / 3, 2) + 1) {}

void Nearest::offer(const std::string& word, std::size_t distance) {
  if (distance >= limit_) return;
  limit_ = distance;
  word_ = word;
}

std::string suggestion(std::string_view typed, const std::vector<std::string>& words) {
  Nearest nearest(typed);
  for (const std::string& word : words) nearest.offer(word, edit_distance(typed, word));
  return nearest.word().empty() ? "" : "; did you mean \"" + nearest.word() + "\"?";
}

}  // namespace weft

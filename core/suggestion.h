// "Did you mean ...?": which known word a mistyped one was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Insertions, deletions and replacements of a byte that turn one word into the other (Levenshtein 1966); 1 for a
/// beginning of the word.
std::size_t edit_distance(std::string_view typed, std::string_view word);

/// The nearest of some words, kept while it is near enough to be what was meant.
class Nearest {
 public:
  explicit Nearest(std::string_view typed);
  void offer(const std::string& word, std::size_t distance);
  /// Empty if none was near enough.
  const std::string& word() const { return word_; }

 private:
  std::size_t limit_;
  std::string word_;
};

/// `; did you mean "word"?` for the nearest of `words`, or nothing.
std::string suggestion(std::string_view typed, const std::vector<std::string>& words);

}  // namespace weft

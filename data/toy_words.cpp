// Written forms of French and English words in a row. Words come in lower case, the first letter of a
// sentence too.
#include "weft/data/toy_words.h"

#include <algorithm>
#include <array>

namespace weft::toy {
namespace {

constexpr std::array<std::string_view, 3> kAspirated = {"haricot", "hibou", "huit"};  // huit elides nothing either
constexpr std::array<std::string_view, 2> kSpokenWithYou = {"European", "uniform"};   // a, not an

template <std::size_t N>
bool begins_with_any(std::string_view word, const std::array<std::string_view, N>& stems) {
  return std::any_of(stems.begin(), stems.end(), [&](std::string_view stem) { return word.starts_with(stem); });
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void append(std::string& text, std::string_view word) {
  if (!text.empty() && text.back() != '\'' && word != ",") text += ' ';
  text += word;
}

void capitalise(std::string& text) {
  char& first = text.front();
  if (first >= 'a' && first <= 'z') first = static_cast<char>(first - 'a' + 'A');
  constexpr std::string_view kSmall = "à", kCapital = "À";  // of the same length
  if (text.starts_with(kSmall)) std::copy(kCapital.begin(), kCapital.end(), text.begin());
}

}  // namespace

void add(std::vector<std::string>& words, std::string_view text) {
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
}

void add(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

void add(Phrase& phrase, const Phrase& more) {
  add(phrase.french, more.french);
  add(phrase.english, more.english);
}

std::string word_at(std::string_view text, int index) {
  std::vector<std::string> words;
  add(words, text);
  return words.at(static_cast<std::size_t>(index));
}

bool elides(std::string_view word) {
  if (word.empty() || begins_with_any(word, kAspirated)) return false;
  if (std::string_view("aeiouhAEIOUH").find(word.front()) != std::string_view::npos) return true;
  constexpr std::array<std::string_view, 8> accented = {"à", "â", "é", "è", "ê", "É", "œ", "î"};
  return begins_with_any(word, accented);
}

std::string french_sentence(const std::vector<std::string>& words, std::string_view stop) {
  std::string text;
  const auto at = [&](std::size_t i) { return i < words.size() ? std::string_view(words[i]) : std::string_view(); };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i], next = at(i + 1);
    if (is_one_of(word, {"de", "à"}) && (next == "les" || (next == "le" && !elides(at(i + 2))))) {
      append(text, word == "de" ? (next == "les" ? "des" : "du") : (next == "les" ? "aux" : "au"));
      ++i;
    } else if (is_one_of(word, {"le", "la", "je", "ne", "de", "que"}) && elides(next)) {
      append(text, word.substr(0, word.size() - 1));
      text += '\'';
    } else {
      append(text, word);
    }
  }
  capitalise(text);
  if (stop == "?") text += ' ';
  return text.append(stop);
}

std::string english_sentence(const std::vector<std::string>& words, std::string_view stop) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    append(text, words[i]);
    if (words[i] != "a" || i + 1 == words.size()) continue;
    const std::string& next = words[i + 1];
    if (std::string_view("aeiouAEIOU").find(next.front()) != std::string_view::npos &&
        !begins_with_any(next, kSpokenWithYou)) {
      text += 'n';
    }
  }
  capitalise(text);
  return text.append(stop);
}

}  // namespace weft::toy

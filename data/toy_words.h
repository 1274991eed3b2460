// From words to sentences: elision and contraction in French, a or an in English, capitals, spaces and stops.
// The grammar lists plain words ("est-ce", "que", "elle", "va", "à", "le", "marché"); here they take their
// written form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::toy {

/// Words of one phrase in both languages.
struct Phrase {
  std::vector<std::string> french, english;
};

/// Adds the words of a text that is split at spaces; nothing for an empty text.
void add(std::vector<std::string>& words, std::string_view text);

/// Adds all words of `more`.
void add(std::vector<std::string>& words, const std::vector<std::string>& more);

/// Adds both sides of `more`.
void add(Phrase& phrase, const Phrase& more);

/// Word number `index` of a text that is split at spaces.
std::string word_at(std::string_view text, int index);

/// Whether a French word asks for elision: it begins with a vowel or a mute h.
bool elides(std::string_view french_word);

/// Writes a French sentence: que elle -> qu'elle, à le -> au, a space before "?"; `stop` is "." or "?".
std::string french_sentence(const std::vector<std::string>& words, std::string_view stop);

/// Writes an English sentence: a apple -> an apple.
std::string english_sentence(const std::vector<std::string>& words, std::string_view stop);

}  // namespace weft::toy

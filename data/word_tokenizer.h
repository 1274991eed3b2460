// The tokenizer "word": words and punctuation apart, reversible by rules of spacing and rare marks.
#pragma once

#include "weft/data/tokenizer.h"

namespace weft {

/// Splits punctuation and symbols off words; keeps 3.14, 1,000 and est-ce whole; splits l'Afrique into l' and
/// Afrique, don't into do and n't, Mary's into Mary and 's.
///
/// Join puts spaces by default rules (none before a full stop, none after l' or an opening bracket, …;
/// straight quotes open and close in turn). Only where a text differs does a token carry a mark: U+FFED for
/// "no space here", U+2581 for "a space here", in front of a token or after a punctuation token. So "mot ?"
/// is mot ▁? and "word?" is word ?. A mark character of the text is a token of its own, and a token of one
/// code point is never read as marked.
class WordTokenizer : public Tokenizer {
 public:
  explicit WordTokenizer(bool lowercase) : lowercase_(lowercase) {}
  std::vector<std::string> split(std::string_view line) const override;
  std::string join(std::span<const std::string> tokens) const override;
  std::string normalise(std::string_view line) const override { return normalise_text(line, lowercase_); }

 private:
  bool lowercase_;
};

}  // namespace weft

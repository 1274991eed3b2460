// The sentences of the toy language pair: clauses in five tenses, statements, negation and questions, in
// French and English at once. From the French alone exactly one English is right.
#pragma once

#include <string>

#include "weft/core/random.h"

namespace weft::toy {

/// A sentence in both languages.
struct Sentence {
  std::string french, english;
  bool held_out = false;  // has an adjective-noun or verb-object pair for which is_held_out holds
};

/// Draws a sentence of 3 to 16 words on either side.
Sentence draw_sentence(Random& random);

}  // namespace weft::toy

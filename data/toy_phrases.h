// Noun phrases, subjects and places of the toy language pair, with agreement. What is drawn and how it is
// written are kept apart: a NounPhrase is a choice, write() gives its words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/core/random.h"
#include "weft/data/toy_lexicon.h"
#include "weft/data/toy_words.h"

namespace weft::toy {

/// Whether a pair of lemmas, an adjective or a verb and its noun, is kept out of training: about 8 in 100
/// are.
bool is_held_out(std::string_view lemma, std::string_view noun);

/// True with the given probability.
bool chance(Random& random, double probability);

/// An index into the weights, with probability in proportion to its weight.
std::size_t draw_weighted(Random& random, std::initializer_list<int> weights);

/// One of the items, all equally likely.
template <class Items>
const auto& draw_from(Random& random, const Items& items) {
  return items[static_cast<std::size_t>(random.below(items.size()))];
}

/// One of the items that pass the test, all equally likely; at least one must.
template <class Items, class Test>
const auto& draw_if(Random& random, const Items& items, Test test) {
  const auto* item = &draw_from(random, items);
  while (!test(*item)) item = &draw_from(random, items);
  return *item;
}

enum class Article { kNone, kDefinite, kIndefinite, kNegated, kPossessive, kDemonstrative };

/// A noun with what goes with it. kNegated is the indefinite after ne ... pas: de in French, a or any in
/// English.
struct NounPhrase {
  const Noun* noun = nullptr;
  bool plural = false;
  Article article = Article::kDefinite;
  const Possessive* possessive = nullptr;
  const WordPair* number = nullptr;
  const Adjective *before = nullptr, *after = nullptr;

  /// Whether an adjective and the noun are a pair kept out of training.
  bool held_out() const;
};

Phrase write(const NounPhrase& phrase);

/// Draws a definite, possessive or demonstrative phrase, or one with a number, as fits the noun.
NounPhrase draw_specific(Random& random, const Noun& noun);

/// Draws the phrase of a direct object, which may be indefinite too.
NounPhrase draw_object(Random& random, const Noun& noun, bool negative);

/// Adds up to two adjectives with the given probability.
void draw_adjectives(Random& random, NounPhrase& phrase, double probability);

/// A subject with what its verb must agree with.
struct Subject {
  Phrase words;
  int slot = 2;  // as Pronoun::slot
  Gender gender = Gender::kMasculine;
  const Noun* noun = nullptr;  // none for pronouns and names
  unsigned kind = kAdult;
  bool pronoun = false, held_out = false;

  bool plural() const { return slot >= 3; }
};

/// Draws a pronoun, a name, two names, or a noun phrase of a person, or of an animal where `animals` allows
/// it.
Subject draw_subject(Random& random, bool animals);

/// Makes the subject of a noun phrase.
Subject subject_of(const NounPhrase& phrase);

/// A person other than the subject who is given something or comes along: "Paul", "my sister", "the doctors".
Phrase draw_person(Random& random, const Subject& subject);

/// A region as an object: l'Afrique, le Japon, Paris.
Phrase region_name(const Region& region);
/// Where: en Afrique, au Japon, à Paris; `english` is "in" or "to".
Phrase region_at(const Region& region, std::string_view english);
/// From where: d'Afrique, du Japon, de Paris.
Phrase region_from(const Region& region);
/// At a place, or to it.
Phrase place_at(const Place& place, bool towards);
/// Near a place: près du jardin.
Phrase place_near(const Place& place);

}  // namespace weft::toy

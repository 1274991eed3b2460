// Agreement inside a noun phrase, and the prepositions of places.
#include "weft/data/toy_phrases.h"

#include <algorithm>
#include <numeric>

namespace weft::toy {
namespace {

bool feminine(const Noun& noun) { return noun.gender == Gender::kFeminine; }

std::string french_form(const Adjective& adjective, const NounPhrase& phrase) {
  const Noun& noun = *phrase.noun;
  if (&adjective == phrase.before && !phrase.plural && !feminine(noun) && *adjective.before_vowel != '\0' &&
      elides(noun.singular)) {
    return adjective.before_vowel;
  }
  return adjective.form(noun.gender, phrase.plural);
}

/// The French determiner of a phrase in front of `next`, the word that follows it.
std::string french_determiner(const NounPhrase& phrase, std::string_view next) {
  const bool she = feminine(*phrase.noun);
  switch (phrase.article) {
    case Article::kNone:
      return "";
    case Article::kNegated:
      return "de";
    case Article::kDefinite:
      return phrase.plural ? "les" : she ? "la" : "le";
    case Article::kIndefinite:
      if (phrase.plural) return phrase.before != nullptr ? "de" : "des";
      if (!phrase.noun->countable()) return she ? "de la" : "de le";
      return she ? "une" : "un";
    case Article::kPossessive:
      if (phrase.plural) return phrase.possessive->plural;
      return she && !elides(next) ? phrase.possessive->feminine : phrase.possessive->masculine;
    case Article::kDemonstrative:
      if (phrase.plural) return "ces";
      return she ? "cette" : elides(next) ? "cet" : "ce";
  }
  return "";
}

std::string english_determiner(const NounPhrase& phrase) {
  const bool single = !phrase.plural && phrase.noun->countable();
  switch (phrase.article) {
    case Article::kNone:
      return "";
    case Article::kDefinite:
      return "the";
    case Article::kIndefinite:
      return single ? "a" : "some";
    case Article::kNegated:
      return single ? "a" : "any";
    case Article::kPossessive:
      return phrase.possessive->english;
    case Article::kDemonstrative:
      return phrase.plural ? "these" : "this";
  }
  return "";
}

}  // namespace

bool is_held_out(std::string_view lemma, std::string_view noun) {
  return Random(random_site(lemma), random_site(noun)).below(100) < 8;
}

bool chance(Random& random, double probability) { return random.uniform() < probability; }

std::size_t draw_weighted(Random& random, std::initializer_list<int> weights) {
  const int sum = std::accumulate(weights.begin(), weights.end(), 0);
  auto left = static_cast<int>(random.below(static_cast<std::uint64_t>(sum)));
  std::size_t index = 0;
  for (const int weight : weights) {
    if (left < weight) break;
    left -= weight;
    ++index;
  }
  return index;
}

bool NounPhrase::held_out() const {
  return (before != nullptr && is_held_out(before->masculine, noun->singular)) ||
         (after != nullptr && is_held_out(after->masculine, noun->singular));
}

Phrase write(const NounPhrase& phrase) {
  const Noun& noun = *phrase.noun;
  Phrase inner;
  if (phrase.number != nullptr) add(inner, {{phrase.number->french}, {phrase.number->english}});
  if (phrase.before != nullptr) add(inner, {{french_form(*phrase.before, phrase)}, {phrase.before->english}});
  if (phrase.after != nullptr) inner.english.emplace_back(phrase.after->english);
  add(inner, {{phrase.plural ? noun.plural : noun.singular}, {phrase.plural ? noun.english_plural : noun.english}});
  if (phrase.after != nullptr) inner.french.push_back(french_form(*phrase.after, phrase));
  Phrase words;
  add(words.french, french_determiner(phrase, inner.french.front()));
  add(words.english, english_determiner(phrase));
  add(words, inner);
  return words;
}

NounPhrase draw_specific(Random& random, const Noun& noun) {
  NounPhrase phrase{&noun, noun.countable() && chance(random, 0.38)};
  constexpr unsigned kNeverPossessed = kAdult | kChild | kJob;
  const bool possessive = noun.kind == kKin || ((noun.kind & kNeverPossessed) == 0 && chance(random, 0.4));
  phrase.article = possessive             ? Article::kPossessive
                   : chance(random, 0.35) ? Article::kDemonstrative
                                          : Article::kDefinite;
  if (possessive) phrase.possessive = &draw_from(random, possessives());
  if (phrase.plural && chance(random, 0.25)) phrase.number = &draw_from(random, numbers());
  if (phrase.number != nullptr && !possessive && chance(random, 0.6)) phrase.article = Article::kNone;
  return phrase;
}

NounPhrase draw_object(Random& random, const Noun& noun, bool negative) {
  NounPhrase phrase = draw_specific(random, noun);
  if (phrase.article == Article::kNone && negative) phrase.article = Article::kDefinite;
  if (noun.kind != kKin && chance(random, 0.5)) {
    phrase = {&noun, phrase.plural, negative ? Article::kNegated : Article::kIndefinite};
    // "pas de souris" could be one mouse or many; here it is one.
    if (negative && noun.singular == std::string_view(noun.plural)) phrase.plural = false;
  }
  return phrase;
}

void draw_adjectives(Random& random, NounPhrase& phrase, double probability) {
  if (!chance(random, probability)) return;
  const auto fits = [&](const Adjective& adjective) { return (adjective.describes & phrase.noun->kind) != 0; };
  const Adjective& first = draw_if(random, adjectives(), fits);
  (first.position == Position::kBefore ? phrase.before : phrase.after) = &first;
  if (phrase.before == nullptr || (phrase.noun->kind & (kText | kGoods)) == 0 || !chance(random, 0.3)) return;
  phrase.after = &draw_if(random, adjectives(), [&](const Adjective& adjective) {
    return fits(adjective) && adjective.position == Position::kAfterSecond;
  });
}

Subject subject_of(const NounPhrase& phrase) {
  Subject subject;
  subject.words = write(phrase);
  subject.slot = phrase.plural ? 5 : 2;
  subject.gender = phrase.noun->gender;
  subject.noun = phrase.noun;
  subject.kind = phrase.noun->kind;
  subject.held_out = phrase.held_out();
  return subject;
}

Subject draw_subject(Random& random, bool animals) {
  const auto kind = draw_weighted(random, {57, 19, 4, 20});
  Subject subject;
  if (kind == 0) {
    // je, tu, nous and vous more often: the other forms of a verb come with names and nouns too.
    const bool speaker = chance(random, 0.75);
    const Pronoun& pronoun = draw_if(random, pronouns(), [&](const Pronoun& p) { return p.any_gender == speaker; });
    const bool she = pronoun.any_gender ? chance(random, 0.5) : pronoun.gender == Gender::kFeminine;
    subject.words = {{pronoun.french}, {pronoun.english}};
    subject.slot = pronoun.slot;
    subject.gender = she ? Gender::kFeminine : Gender::kMasculine;
    subject.pronoun = true;
  } else if (kind == 3) {
    const unsigned kinds = kPeople | (animals ? kAnimal : 0u);
    NounPhrase phrase =
        draw_specific(random, draw_if(random, nouns(), [&](const Noun& n) { return (n.kind & kinds) != 0; }));
    if (!phrase.plural && phrase.noun->kind != kKin && chance(random, 0.2)) phrase.article = Article::kIndefinite;
    if (phrase.article == Article::kIndefinite) phrase.possessive = nullptr;
    draw_adjectives(random, phrase, 0.25);
    subject = subject_of(phrase);
  } else {
    const Name& name = draw_from(random, names());
    subject.words = {{name.name}, {name.name}};
    subject.gender = name.gender;
    if (kind == 2) {
      const Name& other = draw_if(random, names(), [&](const Name& n) { return &n != &name; });
      add(subject.words, {{"et", other.name}, {"and", other.name}});
      subject.slot = 5;
      if (other.gender == Gender::kMasculine) subject.gender = Gender::kMasculine;
    }
  }
  return subject;
}

Phrase draw_person(Random& random, const Subject& subject) {
  const auto other = [&](const char* word) {
    const auto& words = subject.words.french;
    return std::find(words.begin(), words.end(), word) == words.end();
  };
  if (chance(random, 0.5)) {
    const Name& name = draw_if(random, names(), [&](const Name& n) { return other(n.name); });
    return {{name.name}, {name.name}};
  }
  const Noun& noun = draw_if(
      random, nouns(), [&](const Noun& n) { return (n.kind & kPeople) != 0 && other(n.singular) && other(n.plural); });
  NounPhrase phrase{&noun, noun.countable() && chance(random, 0.3)};
  if (noun.kind == kKin) {
    phrase.article = Article::kPossessive;
    phrase.possessive = &draw_from(random, possessives());
  }
  return write(phrase);
}

Phrase region_name(const Region& region) {
  constexpr const char* kArticles[] = {"", "la", "le", "les"};
  Phrase words;
  add(words.french, kArticles[static_cast<int>(region.kind)]);
  add(words.french, region.french);
  add(words.english, region.english);
  return words;
}

Phrase region_at(const Region& region, std::string_view english) {
  constexpr const char* kPrepositions[] = {"à", "en", "à le", "à les"};
  Phrase words;
  add(words.french, kPrepositions[static_cast<int>(region.kind)]);
  add(words.french, region.french);
  add(words.english, english);
  add(words.english, region.english);
  return words;
}

Phrase region_from(const Region& region) {
  constexpr const char* kPrepositions[] = {"de", "de", "de le", "de les"};
  Phrase words;
  add(words.french, kPrepositions[static_cast<int>(region.kind)]);
  add(words.french, region.french);
  add(words.english, "from");
  add(words.english, region.english);
  return words;
}

Phrase place_at(const Place& place, bool towards) {
  Phrase words;
  words.french = {place.preposition, place.gender == Gender::kFeminine ? "la" : "le", place.french};
  add(words.english, towards ? place.english_to : place.english_at);
  return words;
}

Phrase place_near(const Place& place) {
  Phrase words;
  words.french = {"près", "de", place.gender == Gender::kFeminine ? "la" : "le", place.french};
  words.english = {"near"};
  add(words.english, place.english);
  return words;
}

}  // namespace weft::toy

// The words of the toy language pair: what a noun, an adjective, a verb, a place and a time are. The tables
// themselves are in toy_lexicon.cpp. No French form has two English translations in the places where the
// grammar uses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::toy {

enum class Gender : std::uint8_t { kMasculine, kFeminine };

/// What a noun stands for, as a set of bits: verbs say what they take, adjectives what they describe.
enum Kind : unsigned {
  kKin = 1u << 0,    // named with a possessive only: my father
  kAdult = 1u << 1,  // never with a possessive: "ma femme" would be my wife
  kChild = 1u << 2,
  kJob = 1u << 3,
  kAnimal = 1u << 4,
  kFood = 1u << 5,   // countable
  kDish = 1u << 6,   // not countable: bread
  kDrink = 1u << 7,  // not countable
  kText = 1u << 8,
  kThing = 1u << 9,
  kBig = 1u << 10,  // things too big to hand over
};
inline constexpr unsigned kPeople = kKin | kAdult | kChild | kJob;
inline constexpr unsigned kGoods = kThing | kBig;
inline constexpr unsigned kMeals = kFood | kDish;

struct Noun {
  Kind kind;
  Gender gender;
  const char *singular, *plural;  // plural "" if it cannot be counted
  const char *english, *english_plural;

  bool countable() const { return *plural != '\0'; }
};

/// Where an adjective stands. Only colours and nationalities may follow a noun that has another adjective
/// before it.
enum class Position : std::uint8_t { kBefore, kAfter, kAfterSecond, kState };

struct Adjective {
  Position position;  // kState: after the noun, and passes with time: tired
  unsigned describes;
  const char *masculine, *feminine, *masculine_plural, *feminine_plural;
  const char* english;
  const char* before_vowel = "";  // masculine singular before a vowel, where it differs: bel

  const char* form(Gender gender, bool plural) const {
    if (gender == Gender::kMasculine) return plural ? masculine_plural : masculine;
    return plural ? feminine_plural : feminine;
  }
};

/// What follows a verb.
enum class Frame : std::uint8_t {
  kNothing,     // sleeps
  kObject,      // sees the cat
  kLove,        // loves my cat, loves Paris: never "the cat", which French uses for all cats
  kGive,        // gives the book to Paul
  kVisit,       // visits Africa
  kGo,          // goes to the park
  kStay,        // stays at the park
  kLive,        // lives in Paris
  kCome,        // comes from Paris
  kLeave,       // leaves for Paris
  kGame,        // plays chess: joue aux échecs
  kInstrument,  // plays the piano: joue du piano
  kSpeak,       // speaks French: parle français
  kLearn,       // learns French: apprend le français
};

/// How French forms the past that English gives as the simple past.
enum class Past : std::uint8_t { kAvoir, kEtre, kImperfect };

struct Verb {
  Frame frame;
  unsigned objects;  // kinds of noun
  Past past;
  bool animals;  // an animal may do it
  const char* infinitive;
  const char* present;     // je tu il nous vous ils
  const char* past_forms;  // the participle, or six forms of the imperfect
  const char *english, *english_third, *english_past;
};

/// A place named by a common noun.
struct Place {
  Gender gender;
  const char *french, *preposition;
  const char *english, *english_at, *english_to;  // the garden, in the garden, into the garden
};

enum class RegionKind : std::uint8_t { kCity, kFeminine, kMasculine, kPlural };

/// A continent, country or city.
struct Region {
  RegionKind kind;
  const char *french, *english;
};

/// Tenses as bits, for the time phrases that go with them.
enum When : unsigned { kNow = 1, kThen = 2, kAhead = 4, kAlways = 7 };

enum class TimeKind : std::uint8_t { kMonth, kDay, kDeictic, kHour, kYear };

struct TimePhrase {
  TimeKind kind;
  unsigned when;
  std::string french, english;
};

struct Name {
  const char* name;
  Gender gender;
};

struct Pronoun {
  const char *french, *english;
  int slot;         // 0 je, 1 tu, 2 il, 3 nous, 4 vous, 5 ils: the order of Verb::present
  bool any_gender;  // speaker and listener may be of either
  Gender gender;
};

struct Tonic {
  const char *french, *english;
  int slot;
};

struct Possessive {
  const char *masculine, *feminine, *plural, *english;
};

struct WordPair {
  const char *french, *english;
};

/// A game or an instrument, with the article it takes.
struct Play {
  const char *article, *french, *english;
};

std::span<const Noun> nouns();
std::span<const Adjective> adjectives();
std::span<const Verb> verbs();
std::span<const Place> places();
std::span<const Region> regions();
std::span<const TimePhrase> time_phrases();
std::span<const Name> names();
std::span<const Pronoun> pronouns();
std::span<const Tonic> tonics();
std::span<const Possessive> possessives();
std::span<const WordPair> numbers();  // two to ten
std::span<const WordPair> adverbs();  // after the verb in French, before it in English
std::span<const WordPair> languages();
std::span<const Play> games();
std::span<const Play> instruments();

/// être, and the verbs that help to form tenses.
const Verb& be();
const Verb& can();

/// The verb with this infinitive, from verbs().
const Verb& verb(std::string_view infinitive);

}  // namespace weft::toy

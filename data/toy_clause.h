// A clause of the toy language pair, and its written form in each language: verb groups, word order,
// questions.
#pragma once

#include <string>
#include <vector>

#include "weft/data/toy_phrases.h"

namespace weft::toy {

/// Past is the passé composé (être, avoir, vouloir and their like: the imperfect), in English the simple
/// past; future is "va dormir", "is going to sleep"; want and can put a verb before the infinitive.
enum class Tense { kPresent, kPast, kFuture, kWant, kCan };
enum class Mood { kStatement, kYesNo, kWho, kWhere, kFromWhere, kWhen, kWhy, kWhat, kHowMany };

/// A statement or a question, part by part.
struct Clause {
  Mood mood = Mood::kStatement;
  Tense tense = Tense::kPresent;
  bool negative = false, held_out = false;
  Subject subject;
  const Verb* verb = nullptr;
  Phrase object;    // or predicate: what the verb asks for
  Phrase place;     // where, and with whom
  Phrase time;      // or the reason; last, or first if time_first
  Phrase how_many;  // the noun after Combien de
  const WordPair* adverb = nullptr;
  bool time_first = false;

  /// Whether the verb is être.
  bool is_be() const { return verb == &be(); }
};

/// The French verbs after the subject, with ne ... pas around the finite one: n'a pas mangé.
std::vector<std::string> french_verbs(const Clause& clause);

/// The English verbs: the auxiliary that a question moves and a negation needs, and what stays behind the
/// subject.
struct EnglishVerbs {
  std::string auxiliary, rest;
  std::string inflected;  // both in one, for a statement that needs no do; else empty
};
EnglishVerbs english_verbs(const Clause& clause);

std::string write_french(const Clause& clause);
std::string write_english(const Clause& clause);

}  // namespace weft::toy

// The word order of a clause in French and in English.
#include "weft/data/toy_clause.h"

namespace weft::toy {
namespace {

std::string present_be(int slot) { return slot == 0 ? "am" : slot == 2 ? "is" : "are"; }

bool has_finite_first(Mood mood) { return mood == Mood::kStatement || mood == Mood::kWho; }

}  // namespace

std::vector<std::string> french_verbs(const Clause& clause) {
  const Verb& verb_ = *clause.verb;
  const int slot = clause.subject.slot;
  std::string finite, rest;
  switch (clause.tense) {
    case Tense::kPresent:
      finite = word_at(verb_.present, slot);
      break;
    case Tense::kPast:
      if (verb_.past == Past::kImperfect) {
        finite = word_at(verb_.past_forms, slot);
      } else {
        finite = word_at((verb_.past == Past::kEtre ? be() : verb("avoir")).present, slot);
        rest = verb_.past_forms;
        if (verb_.past == Past::kEtre && clause.subject.gender == Gender::kFeminine) rest += 'e';
        if (verb_.past == Past::kEtre && clause.subject.plural()) rest += 's';
      }
      break;
    case Tense::kFuture:
      finite = word_at(verb("aller").present, slot);
      break;
    case Tense::kWant:
      finite = word_at(verb("vouloir").present, slot);
      break;
    case Tense::kCan:
      finite = word_at(can().present, slot);
      break;
  }
  if (clause.tense >= Tense::kFuture) rest = verb_.infinitive;
  std::vector<std::string> words;
  if (clause.negative) words.emplace_back("ne");
  words.push_back(finite);
  if (clause.negative) words.emplace_back("pas");
  if (clause.adverb != nullptr) words.emplace_back(clause.adverb->french);
  add(words, rest);
  return words;
}

EnglishVerbs english_verbs(const Clause& clause) {
  const Verb& verb_ = *clause.verb;
  const int slot = clause.subject.slot;
  const std::string base = verb_.english;
  const bool third = slot == 2;
  switch (clause.tense) {
    case Tense::kPresent:
      if (clause.is_be()) return {present_be(slot), "", ""};
      return {third ? "does" : "do", base, third ? verb_.english_third : base};
    case Tense::kPast:
      if (clause.is_be()) return {slot == 0 || third ? "was" : "were", "", ""};
      return {"did", base, verb_.english_past};
    case Tense::kFuture:
      return {present_be(slot), "going to " + base, ""};
    case Tense::kWant:
      return {third ? "does" : "do", "want to " + base, (third ? "wants to " : "want to ") + base};
    case Tense::kCan:
      return {"can", base, ""};
  }
  return {};
}

std::string write_french(const Clause& clause) {
  std::vector<std::string> words;
  const bool inverted = clause.mood == Mood::kWhere && clause.is_be() && !clause.subject.pronoun;
  switch (clause.mood) {
    case Mood::kStatement:
      break;
    case Mood::kYesNo:
      add(words, "est-ce que");
      break;
    case Mood::kWho:
      break;
    case Mood::kWhere:
      add(words, inverted ? "où" : "où est-ce que");
      break;
    case Mood::kFromWhere:
      add(words, "de où est-ce que");
      break;
    case Mood::kWhen:
      add(words, "quand est-ce que");
      break;
    case Mood::kWhy:
      add(words, "pourquoi est-ce que");
      break;
    case Mood::kWhat:
      add(words, "qu'est-ce que");
      break;
    case Mood::kHowMany:
      add(words, "combien de");
      add(words, clause.how_many.french);
      add(words, "est-ce que");
      break;
  }
  if (clause.time_first) {
    add(words, clause.time.french);
    words.emplace_back(",");
  }
  if (!inverted) add(words, clause.subject.words.french);
  add(words, french_verbs(clause));
  if (inverted) add(words, clause.subject.words.french);
  add(words, clause.object.french);
  add(words, clause.place.french);
  if (!clause.time_first) add(words, clause.time.french);
  return french_sentence(words, clause.mood == Mood::kStatement ? "." : "?");
}

std::string write_english(const Clause& clause) {
  std::vector<std::string> words;
  switch (clause.mood) {
    case Mood::kStatement:
    case Mood::kYesNo:
    case Mood::kWho:
      break;
    case Mood::kWhere:
    case Mood::kFromWhere:
      add(words, "where");
      break;
    case Mood::kWhen:
      add(words, "when");
      break;
    case Mood::kWhy:
      add(words, "why");
      break;
    case Mood::kWhat:
      add(words, "what");
      break;
    case Mood::kHowMany:
      add(words, "how many");
      add(words, clause.how_many.english);
      break;
  }
  if (clause.time_first) {
    add(words, clause.time.english);
    words.emplace_back(",");
  }
  const EnglishVerbs group = english_verbs(clause);
  if (has_finite_first(clause.mood)) {
    add(words, clause.subject.words.english);
    if (clause.adverb != nullptr) words.emplace_back(clause.adverb->english);
    if (!clause.negative && !group.inflected.empty()) {
      add(words, group.inflected);
    } else {
      add(words, clause.negative && group.auxiliary == "can" ? "cannot" : group.auxiliary);
      if (clause.negative && group.auxiliary != "can") add(words, "not");
      add(words, group.rest);
    }
  } else {
    add(words, group.auxiliary);
    add(words, clause.subject.words.english);
    if (clause.negative) add(words, "not");
    add(words, group.rest);
  }
  add(words, clause.object.english);
  add(words, clause.place.english);
  if (clause.mood == Mood::kFromWhere) add(words, "from");
  if (!clause.time_first) add(words, clause.time.english);
  return english_sentence(words, clause.mood == Mood::kStatement ? "." : "?");
}

}  // namespace weft::toy

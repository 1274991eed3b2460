// What is said: draws the parts of a clause so that they go together. How it is said is in toy_clause.cpp.
// The weights keep every word of the lexicon and every construction frequent.
#include "weft/data/toy_grammar.h"

#include <algorithm>

#include "weft/data/toy_clause.h"

namespace weft::toy {
namespace {

unsigned when(Tense tense) { return tense == Tense::kPresent ? kNow : tense == Tense::kPast ? kThen : kAhead; }

Phrase draw_time(Random& random, Tense tense, bool deictic_only) {
  constexpr TimeKind kKinds[] = {TimeKind::kMonth, TimeKind::kDeictic, TimeKind::kDay, TimeKind::kHour,
                                 TimeKind::kYear};
  TimeKind kind = TimeKind::kDeictic;
  if (!deictic_only) {
    kind = kKinds[draw_weighted(random, {34, 26, 14, 16, tense == Tense::kPresent ? 0 : 10})];
  }
  const TimePhrase& time = draw_if(random, time_phrases(),
                                   [&](const TimePhrase& t) { return t.kind == kind && (t.when & when(tense)) != 0; });
  Phrase words;
  add(words.french, time.french);
  add(words.english, time.english);
  return words;
}

/// Where something happens: en Italie, au parc, près de l'école.
Phrase draw_where(Random& random) {
  switch (draw_weighted(random, {4, 4, 2})) {
    case 0:
      return region_at(draw_from(random, regions()), "in");
    case 1:
      return place_at(draw_from(random, places()), false);
    default:
      return place_near(draw_from(random, places()));
  }
}

Phrase draw_companion(Random& random, const Subject& subject) {
  Phrase words = {{"avec"}, {"with"}};
  if (subject.pronoun && chance(random, 0.5)) {
    const auto other_person = [&](const Tonic& t) { return t.slot % 3 != subject.slot % 3; };
    const Tonic& tonic = draw_if(random, tonics(), other_person);
    add(words, {{tonic.french}, {tonic.english}});
  } else {
    add(words, draw_person(random, subject));
  }
  return words;
}

Phrase play(const char* preposition, const Play& what) {
  Phrase words = {{preposition, what.article, what.french}, {}};
  add(words.english, what.english);
  return words;
}

/// Fills in a noun as the object of clause.verb, which may turn into Combien de ...; reserves verb-object
/// pairs.
void draw_noun_object(Random& random, Clause& clause) {
  const Verb& verb_ = *clause.verb;
  const Noun& noun = draw_if(random, nouns(), [&](const Noun& n) { return (n.kind & verb_.objects) != 0; });
  NounPhrase phrase = draw_object(random, noun, clause.negative);
  if (verb_.frame == Frame::kLove) {
    phrase = draw_specific(random, noun);
    if (phrase.article != Article::kPossessive) phrase.article = Article::kDemonstrative;
  }
  // In the past the participle would agree with what is counted, in forms too rare to learn.
  const bool countable = noun.countable() && noun.kind != kKin && verb_.frame != Frame::kLove;
  if (clause.mood == Mood::kHowMany && (!countable || clause.tense == Tense::kPast)) {
    clause.mood = Mood::kYesNo;
  }
  if (clause.mood == Mood::kHowMany) phrase = {&noun, true, Article::kNone};
  draw_adjectives(random, phrase, 0.4);
  clause.held_out = clause.held_out || phrase.held_out() || is_held_out(verb_.infinitive, noun.singular);
  (clause.mood == Mood::kHowMany ? clause.how_many : clause.object) = write(phrase);
}

/// Fills in what clause.verb asks for, and a place where one fits.
void draw_complements(Random& random, Clause& clause) {
  const Frame frame = clause.verb->frame;
  const Region& region = draw_from(random, regions());
  const bool is_what = clause.mood == Mood::kWhat && (clause.verb->objects & kPeople) == 0;
  if (clause.mood == Mood::kWhat && !is_what) clause.mood = Mood::kYesNo;
  bool place_fits = clause.verb->past != Past::kImperfect && clause.mood != Mood::kWhere;
  double place_chance = 0.2;
  switch (frame) {
    case Frame::kNothing:
      if (chance(random, 0.3)) clause.place = draw_companion(random, clause.subject);
      place_chance = 0.5;
      break;
    case Frame::kObject:
    case Frame::kGive:
    case Frame::kLove:
      if (frame == Frame::kLove && chance(random, 0.25)) {
        clause.object = region_name(region);
      } else if (!is_what) {
        draw_noun_object(random, clause);
      }
      if (frame == Frame::kGive) {
        add(clause.object, {{"à"}, {"to"}});
        add(clause.object, draw_person(random, clause.subject));
        place_fits = false;
      }
      break;
    case Frame::kVisit:
      clause.object = region_name(region);
      place_fits = false;
      break;
    case Frame::kGo:
    case Frame::kStay:
      if (place_fits) {
        if (frame == Frame::kStay) {
          clause.object = draw_where(random);
        } else {
          clause.object = chance(random, 0.5) ? region_at(region, "to") : place_at(draw_from(random, places()), true);
        }
      }
      place_fits = false;
      break;
    case Frame::kLive:
      if (place_fits) {
        clause.object = chance(random, 0.75) ? region_at(region, "in") : place_near(draw_from(random, places()));
      }
      place_fits = false;
      break;
    case Frame::kCome:
      if (clause.mood != Mood::kFromWhere) clause.object = region_from(region);
      place_fits = false;
      break;
    case Frame::kLeave:
      clause.object = {{"pour"}, {"for"}};
      add(clause.object, region_name(region));
      place_fits = false;
      break;
    case Frame::kGame:
    case Frame::kInstrument:
      clause.object =
          frame == Frame::kGame ? play("à", draw_from(random, games())) : play("de", draw_from(random, instruments()));
      if (chance(random, 0.3)) clause.place = draw_companion(random, clause.subject);
      break;
    case Frame::kSpeak:
    case Frame::kLearn: {
      const WordPair& language = draw_from(random, languages());
      if (frame == Frame::kLearn) clause.object.french.emplace_back("le");
      add(clause.object, {{language.french}, {language.english}});
      if (frame == Frame::kSpeak && chance(random, 0.4)) {
        clause.place = draw_companion(random, clause.subject);
      }
      place_fits = frame == Frame::kLearn && place_fits;
      break;
    }
  }
  if (place_fits && chance(random, place_chance)) add(clause.place, draw_where(random));
}

Tense draw_tense(Random& random, const Verb& verb_) {
  if (verb_.past == Past::kImperfect) return chance(random, 0.6) ? Tense::kPresent : Tense::kPast;
  const bool moves_on = verb_.frame != Frame::kCome;
  return static_cast<Tense>(draw_weighted(random, {44, 27, 15, moves_on ? 7 : 0, moves_on ? 7 : 0}));
}

/// A question that fits the verb.
Mood draw_question(Random& random, const Verb& verb_) {
  const Frame frame = verb_.frame;
  const bool object = frame == Frame::kObject || frame == Frame::kGive;
  const bool moment = verb_.past != Past::kImperfect && frame != Frame::kLive;
  const bool placed = frame == Frame::kNothing || frame == Frame::kGo || frame == Frame::kStay ||
                      frame == Frame::kLive || (frame == Frame::kObject && moment);
  constexpr Mood kMoods[] = {Mood::kYesNo, Mood::kWho,  Mood::kWhy,     Mood::kWhen,
                             Mood::kWhere, Mood::kWhat, Mood::kHowMany, Mood::kFromWhere};
  return kMoods[draw_weighted(random, {40, 16, 14, moment && frame != Frame::kCome ? 12 : 0, placed ? 16 : 0,
                                       object ? 14 : 0, object ? 12 : 0, frame == Frame::kCome ? 60 : 0})];
}

void make_who(Clause& clause) {
  clause.subject = Subject();
  clause.subject.words = {{"qui"}, {"who"}};
}

/// Whether "parce qu'il" may follow: the subject is surely he or she, and not called sad or busy already.
bool may_give_reason(const Subject& subject) {
  return subject.noun == nullptr || (subject.kind == kKin && subject.words.french.size() == 2);
}

/// "parce qu'elle est fatiguée": the reason of a person who is or is not up to something.
void add_reason(Random& random, Clause& clause) {
  const Subject& subject = clause.subject;
  const Adjective& state =
      draw_if(random, adjectives(), [](const Adjective& a) { return a.position == Position::kState; });
  const bool she = subject.gender == Gender::kFeminine;
  const Pronoun& pronoun = draw_if(random, pronouns(), [&](const Pronoun& p) {
    return p.slot == subject.slot && (p.any_gender || p.gender == subject.gender);
  });
  Clause reason;
  reason.verb = &be();
  reason.subject = subject;
  reason.tense = clause.tense == Tense::kPast ? Tense::kPast : Tense::kPresent;
  clause.time = {{"parce", "que", pronoun.french}, {"because", pronoun.english}};
  add(clause.time, {french_verbs(reason), {english_verbs(reason).auxiliary}});
  add(clause.time, {{state.form(she ? Gender::kFeminine : Gender::kMasculine, subject.plural())}, {state.english}});
}

void draw_verbal(Random& random, Clause& clause) {
  constexpr Frame kAll[] = {Frame::kNothing, Frame::kObject,     Frame::kLove,  Frame::kGive, Frame::kVisit,
                            Frame::kGo,      Frame::kStay,       Frame::kLive,  Frame::kCome, Frame::kLeave,
                            Frame::kGame,    Frame::kInstrument, Frame::kSpeak, Frame::kLearn};
  const Frame frame = kAll[draw_weighted(random, {12, 43, 5, 6, 11, 6, 5, 3, 3, 3, 3, 3, 2, 2})];
  clause.verb = &draw_if(random, verbs(), [&](const Verb& v) { return v.frame == frame; });
  clause.tense = draw_tense(random, *clause.verb);
  clause.subject = draw_subject(random, clause.verb->animals);
  switch (draw_weighted(random, {60, 17, 23})) {
    case 0:
      break;
    case 1:
      clause.negative = true;
      break;
    default:
      clause.mood = draw_question(random, *clause.verb);
      clause.negative = clause.mood == Mood::kWhy && chance(random, 0.4);
      if (clause.mood == Mood::kWho) make_who(clause);
  }
  draw_complements(random, clause);
  const bool stative = clause.verb->past == Past::kImperfect || frame == Frame::kLive ||
                       (frame == Frame::kCome && clause.tense == Tense::kPresent);
  const bool plain = clause.mood == Mood::kStatement && !clause.negative;
  if (clause.mood == Mood::kStatement && may_give_reason(clause.subject) && !stative && chance(random, 0.09)) {
    add_reason(random, clause);
  } else if (plain && clause.tense == Tense::kPresent && !stative && chance(random, 0.2)) {
    clause.adverb = &draw_from(random, adverbs());
  } else if (!stative && clause.mood != Mood::kWhen && chance(random, frame == Frame::kVisit ? 0.75 : 0.5)) {
    clause.time = draw_time(random, clause.tense, false);
    clause.time_first = clause.mood == Mood::kStatement && chance(random, 0.2);
  }
}

/// "Elle est fatiguée", "La maison est petite", "Paul est médecin", "Mes clés sont dans la cuisine".
void draw_copular(Random& random, Clause& clause) {
  clause.verb = &be();
  const bool thing = chance(random, 0.4);
  if (thing) {
    NounPhrase phrase =
        draw_specific(random, draw_if(random, nouns(), [](const Noun& n) { return (n.kind & kPeople) == 0; }));
    clause.subject = subject_of(phrase);
  } else {
    // "Un homme est vieux" says nothing: no indefinite subject.
    do clause.subject = draw_subject(random, false);
    while (clause.subject.words.english.front() == "a");
  }
  const bool reads_as_person = (clause.subject.kind & kPeople) != 0;
  clause.tense = chance(random, 0.62) ? Tense::kPresent : Tense::kPast;
  switch (draw_weighted(random, {58, 17, 25})) {
    case 0:
      break;
    case 1:
      clause.negative = true;
      break;
    default: {
      constexpr Mood kMoods[] = {Mood::kYesNo, Mood::kWhy, Mood::kWhere, Mood::kWho};
      clause.mood = kMoods[draw_weighted(random, {50, reads_as_person ? 15 : 0, 20, reads_as_person ? 15 : 0})];
      if (clause.mood == Mood::kWho) make_who(clause);
    }
  }
  if (clause.mood == Mood::kWhere) return;
  const std::size_t what = draw_weighted(random, {75, reads_as_person ? 20 : 15, reads_as_person ? 15 : 0});
  if (what == 1 && clause.mood != Mood::kWhy) {
    const bool edible = (clause.subject.kind & (kMeals | kDrink)) != 0;
    clause.object =
        reads_as_person ? draw_where(random) : place_at(edible ? places()[1] : draw_from(random, places()), false);
  } else if (what == 2 && clause.mood != Mood::kWho && clause.subject.kind != kJob) {
    const Noun& job =
        draw_if(random, nouns(), [&](const Noun& n) { return n.kind == kJob && n.gender == clause.subject.gender; });
    const bool plural = clause.subject.plural();
    clause.object.french = {plural ? job.plural : job.singular};
    if (!plural) clause.object.english = {"a"};
    clause.object.english.emplace_back(plural ? job.english_plural : job.english);
  } else {
    // Pairs kept out of training are attributive: a predicate never uses one, in any split.
    const Adjective& adjective = draw_if(random, adjectives(), [&](const Adjective& a) {
      return (a.describes & clause.subject.kind) != 0 &&
             (a.position == Position::kState || clause.mood != Mood::kWhy) &&
             (clause.subject.noun == nullptr || !is_held_out(a.masculine, clause.subject.noun->singular));
    });
    clause.object = {{adjective.form(clause.subject.gender, clause.subject.plural())}, {adjective.english}};
    if (adjective.position == Position::kState && chance(random, 0.5)) {
      if (clause.tense == Tense::kPresent && chance(random, 0.35)) clause.tense = Tense::kFuture;
      clause.time = draw_time(random, clause.tense, true);
    }
  }
}

std::size_t count_words(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

}  // namespace

Sentence draw_sentence(Random& random) {
  constexpr std::size_t kFewest = 3, kMost = 16;
  while (true) {
    Clause clause;
    if (chance(random, 0.8)) {
      draw_verbal(random, clause);
    } else {
      draw_copular(random, clause);
    }
    Sentence sentence = {write_french(clause), write_english(clause), clause.held_out || clause.subject.held_out};
    const auto [least, most] = std::minmax({count_words(sentence.french), count_words(sentence.english)});
    if (least >= kFewest && most <= kMost) return sentence;
  }
}

}  // namespace weft::toy

#include "weft/data/toy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "temporary_folder.h"
#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/data/toy_grammar.h"
#include "weft/data/toy_lexicon.h"
#include "weft/data/toy_words.h"

using namespace weft;

namespace {

using Splits = std::vector<std::pair<std::string, ParallelText>>;

const Splits& french_splits() {
  static const Splits splits = make_toy("fr-en", std::nullopt, 1);
  return splits;
}

const ParallelText& split(const Splits& splits, std::string_view name) {
  return std::find_if(splits.begin(), splits.end(), [&](const auto& s) { return s.first == name; })->second;
}

std::uint64_t hash_of(const ParallelText& text) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < text.source.size(); ++i) {
    hash = hash * 31 + random_site(text.source[i]) * 7 + random_site(text.target[i]);
  }
  return hash;
}

/// The words of a sentence: stops apart, elided words apart with their apostrophe (but aujourd'hui is one).
std::vector<std::string> words_of(const std::string& sentence) {
  std::vector<std::string> words;
  std::string word;
  const auto end = [&] {
    if (!word.empty()) words.push_back(word);
    word.clear();
  };
  for (const char c : sentence) {
    if (c == ' ' || c == '.' || c == ',' || c == '?') {
      end();
      if (c != ' ') words.emplace_back(1, c);
    } else {
      word += c;
      if (c == '\'' && word != "aujourd'" && word != "Aujourd'") end();
    }
  }
  end();
  return words;
}

bool overlap(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::set<std::string> known(a.begin(), a.end());
  return std::any_of(b.begin(), b.end(), [&](const std::string& s) { return known.count(s) > 0; });
}

/// Every adjective-noun and verb-object pair of lemmas in a French sentence, found from its words and the
/// lexicon alone: adjectives beside a noun, and the first noun after a verb with nothing but determiners,
/// pas, souvent and adjectives between.
class PairFinder {
 public:
  PairFinder() {
    for (const auto& noun : toy::nouns()) {
      for (const char* form : {noun.singular, noun.plural}) nouns_.emplace(form, noun.singular);
    }
    nouns_.erase("");
    for (const auto& a : toy::adjectives()) {
      for (const char* f : {a.masculine, a.feminine, a.masculine_plural, a.feminine_plural, a.before_vowel}) {
        adjectives_.emplace(f, a.masculine);
      }
    }
    for (const auto& verb : toy::verbs()) {
      if (verb.objects == 0) continue;
      std::vector<std::string> forms;
      toy::add(forms, verb.present);
      toy::add(forms, verb.past_forms);
      toy::add(forms, verb.infinitive);
      for (const auto& form : forms) verbs_.emplace(form, verb.infinitive);
    }
    for (const auto& number : toy::numbers()) skipped_.insert(number.french);
  }

  std::set<std::pair<std::string, std::string>> operator()(const std::string& sentence) const {
    std::set<std::pair<std::string, std::string>> pairs;
    const auto words = words_of(sentence);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto noun = nouns_.find(words[i]);
      if (noun != nouns_.end()) {
        for (const std::size_t j : {i - 1, i + 1}) {
          const auto adjective = j < words.size() ? adjectives_.find(words[j]) : adjectives_.end();
          if (adjective != adjectives_.end()) pairs.emplace(adjective->second, noun->second);
        }
      }
      const auto verb = verbs_.find(words[i]);
      if (verb == verbs_.end()) continue;
      std::size_t j = i + 1;
      while (j < words.size() && (skipped_.count(words[j]) > 0 || adjectives_.count(words[j]) > 0)) ++j;
      if (j < words.size() && nouns_.count(words[j]) > 0) pairs.emplace(verb->second, nouns_.at(words[j]));
    }
    if (words.front() == "Combien") add_counted(words, pairs);
    return pairs;
  }

 private:
  /// Combien de pommes est-ce que Jane mange ? Modal verbs give way to the infinitive behind them.
  void add_counted(const std::vector<std::string>& words, std::set<std::pair<std::string, std::string>>& pairs) const {
    std::string noun, verb;
    for (const auto& word : words) {
      if (noun.empty() && nouns_.count(word) > 0) noun = nouns_.at(word);
      if (verbs_.count(word) > 0) verb = verbs_.at(word);
    }
    if (!verb.empty()) pairs.emplace(verb, noun);
  }

  std::map<std::string, std::string> nouns_, adjectives_, verbs_;
  std::set<std::string> skipped_ = {"le",   "la",    "l'",  "les",     "un",      "une",     "de",    "d'",
                                    "du",   "des",   "ce",  "cet",     "cette",   "ces",     "mon",   "ma",
                                    "mes",  "ton",   "ta",  "tes",     "notre",   "nos",     "votre", "vos",
                                    "leur", "leurs", "pas", "souvent", "parfois", "rarement"};
};

}  // namespace

TEST_CASE("a toy task gives the same text for the same seed, on every machine") {
  CHECK(hash_of(split(french_splits(), "train")) == 11558583357913436404u);
  CHECK(hash_of(split(make_toy("reverse", 1000, 1), "train")) == 9621955487033593436u);
  CHECK(make_toy("fr-en", 100, 1) == make_toy("fr-en", 100, 1));
  CHECK(make_toy("fr-en", 100, 1) != make_toy("fr-en", 100, 2));
}

TEST_CASE("splits have the documented sizes and order") {
  for (const std::string& task : toy_tasks()) {
    const Splits small = make_toy(task, 50, 3);
    REQUIRE(small.size() >= 3);
    CHECK(small[0].first == "train");
    CHECK(small[1].first == "valid");
    CHECK(small[2].first == "test");
    CHECK(small[0].second.source.size() == 50);
    CHECK(small[1].second.source.size() == 5);
    CHECK(small[2].second.target.size() == 5);
    CHECK(split(make_toy(task, 1, 3), "test").source.size() == 1);
  }
  CHECK(split(french_splits(), "train").source.size() == 60000);
  CHECK(split(french_splits(), "valid").source.size() == 1000);
  CHECK(split(french_splits(), "test").source.size() == 1000);
  CHECK(split(french_splits(), "test_unseen").source.size() == 400);
}

TEST_CASE("valid and test share no sentence with train on either side") {
  for (const std::string& task : toy_tasks()) {
    const Splits splits = task == "fr-en" ? french_splits() : make_toy(task, 8000, 5);
    const ParallelText& train = splits[0].second;
    for (std::size_t i = 1; i < splits.size(); ++i) {
      CHECK_FALSE(overlap(train.source, splits[i].second.source));
      CHECK_FALSE(overlap(train.target, splits[i].second.target));
    }
    CHECK_FALSE(overlap(splits[1].second.source, splits[2].second.source));
  }
}

TEST_CASE("test_unseen is the part of test with a pair of words that train never has together") {
  const PairFinder find;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& sentence : split(french_splits(), "train").source) seen.merge(find(sentence));
  CHECK(seen.size() > 1500);
  const auto is_new = [&](const std::string& sentence) {
    const auto pairs = find(sentence);
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return seen.count(pair) == 0; });
  };
  const ParallelText& test = split(french_splits(), "test");
  const ParallelText& unseen = split(french_splits(), "test_unseen");
  const std::set<std::string> names(unseen.source.begin(), unseen.source.end());
  int count = 0;
  for (std::size_t i = 0; i < test.source.size(); ++i) {
    const bool expected = names.count(test.source[i]) > 0;
    INFO(test.source[i]);
    if (expected) CHECK(is_new(test.source[i]));
    count += is_new(test.source[i]);
  }
  CHECK(count >= 300);
  CHECK(overlap(test.target, unseen.target));
  for (const auto& sentence : unseen.source) {
    CHECK(std::find(test.source.begin(), test.source.end(), sentence) != test.source.end());
  }
}

TEST_CASE("Jane never visits Africa in September, but all the words of it are frequent in train") {
  for (const auto& [name, text] : french_splits()) {
    for (const auto& s : text.source) {
      CHECK_FALSE((s.find("Jane visite l'Afrique") != std::string::npos && s.find("septembre") != std::string::npos));
    }
    CHECK_FALSE(overlap(text.target, {"Jane visits Africa in September."}));
  }
  const ParallelText& train = split(french_splits(), "train");
  const auto count = [&](const std::string& part) {
    return std::count_if(train.source.begin(), train.source.end(),
                         [&](const std::string& s) { return s.find(part) != std::string::npos; });
  };
  CHECK(count("Jane visite ") >= 20);
  CHECK(count("visite l'Afrique") >= 20);
  CHECK(count("l'Afrique en ") >= 10);
  CHECK(count(" en septembre.") >= 100);
  CHECK(count("Jane ") >= 500);
}

TEST_CASE("every word of valid and test is in at least 20 sentences of train") {
  for (const bool source : {true, false}) {
    const auto side = [&](std::string_view name) -> const std::vector<std::string>& {
      const ParallelText& text = split(french_splits(), name);
      return source ? text.source : text.target;
    };
    std::map<std::string, int> counts;
    for (const auto& sentence : side("train")) {
      const auto words = words_of(sentence);
      for (const auto& word : std::set<std::string>(words.begin(), words.end())) ++counts[word];
    }
    CHECK(counts.size() > 400);
    CHECK(counts.size() < 1000);
    for (const char* name : {"valid", "test"}) {
      for (const auto& sentence : side(name)) {
        for (const auto& word : words_of(sentence)) {
          INFO(word);
          CHECK(counts[word] >= 20);
        }
      }
    }
  }
}

TEST_CASE("a French sentence has one English, and both are spelled by the rules") {
  const auto is_vowel = [](std::string_view w) {
    constexpr std::string_view letters[] = {"a", "e", "i", "o", "u", "é", "ê", "œ", "â", "É", "A", "E", "I", "O", "U"};
    return std::any_of(std::begin(letters), std::end(letters), [&](auto v) { return w.starts_with(v); });
  };
  const std::set<std::string> mute = {"homme", "hommes",  "histoire", "histoires", "horloge",   "horloges",
                                      "hôtel", "hôpital", "heureux",  "heureuse",  "heureuses", "habite"};
  const std::set<std::string> elidable = {"le", "la", "je", "ne", "de", "que", "Le", "La", "Je", "Que"};
  std::set<std::string> is_noun;
  for (const auto& noun : toy::nouns()) is_noun.insert(noun.singular);
  std::map<std::string, std::string> english;
  for (const auto& [name, text] : french_splits()) {
    for (std::size_t i = 0; i < text.source.size(); ++i) {
      const std::string& french = text.source[i];
      INFO(french);
      const std::string& translation = text.target[i];  // Clang captures no structured binding
      INFO(translation);
      REQUIRE(english.emplace(french, text.target[i]).first->second == text.target[i]);
      const auto words = words_of(french);
      bool ok = words.size() >= 3 && words.size() <= 24;
      for (std::size_t k = 0; k + 1 < words.size(); ++k) {
        const std::string &word = words[k], &next = words[k + 1];
        const bool vowel = is_vowel(next) || mute.count(next) > 0;
        if (elidable.count(word) > 0 && vowel) ok = false;
        if (word.back() == '\'' && !vowel && next != "hiver" && next.front() != 'h') ok = false;
        if ((word == "ma" || word == "ta" || word == "cet") && vowel != (word == "cet")) ok = false;
        if ((word == "ce" || word == "beau" || word == "nouveau") && is_noun.count(next) > 0 && vowel) ok = false;
        if ((word == "de" || word == "à") && (next == "le" || next == "les")) ok = false;
        if (word.back() == '\'' && (next == "huit" || next.starts_with("haricot") || next.starts_with("hibou"))) {
          ok = false;
        }
      }
      const bool question = french.ends_with(" ?");
      ok = ok && question == text.target[i].ends_with("?") && (question || french.ends_with("."));
      ok = ok && french.find("  ") == std::string::npos && text.target[i].find(" ?") == std::string::npos;
      const auto target = words_of(text.target[i]);
      for (std::size_t k = 0; k + 1 < target.size(); ++k) {
        const std::string& next = target[k + 1];
        const bool an = is_vowel(next) && next != "European" && !next.starts_with("uniform");
        if ((target[k] == "a" || target[k] == "A") && an) ok = false;
        if ((target[k] == "an" || target[k] == "An") && !an) ok = false;
      }
      const std::string& first = text.target[i];
      ok = ok && first.front() >= 'A' && first.front() <= 'Z' && !(french.front() >= 'a' && french.front() <= 'z');
      REQUIRE(ok);
    }
  }
}

TEST_CASE("words take their written forms") {
  using toy::english_sentence;
  using toy::french_sentence;
  CHECK(french_sentence({"est-ce", "que", "elle", "va", "à", "le", "marché"}, "?") == "Est-ce qu'elle va au marché ?");
  CHECK(french_sentence({"je", "ne", "ai", "pas", "de", "eau"}, ".") == "Je n'ai pas d'eau.");
  CHECK(french_sentence({"à", "huit", "heures", ",", "le", "hibou", "dort"}, ".") == "À huit heures, le hibou dort.");
  CHECK(french_sentence({"il", "parle", "à", "le", "homme", "et", "à", "les", "amis"}, ".") ==
        "Il parle à l'homme et aux amis.");
  CHECK(french_sentence({"près", "de", "le", "hôtel", "de", "le", "roi"}, ".") == "Près de l'hôtel du roi.");
  CHECK(english_sentence({"a", "old", "man", "has", "a", "European", "umbrella"}, ".") ==
        "An old man has a European umbrella.");
}

TEST_CASE("agreement: forms that must and must not occur") {
  std::string all;
  const ParallelText& train = split(french_splits(), "train");
  for (std::size_t i = 0; i < train.source.size(); ++i) {
    all += train.source[i];
    all += '\t';
    all += train.target[i];
    all += '\n';
  }
  for (const std::string& must : std::vector<std::string>{"Elle est allée ",
                                                          "Elles sont allées ",
                                                          "Ils sont arrivés ",
                                                          "Il est parti ",
                                                          "un bel ",
                                                          "un nouvel ",
                                                          "mon amie ",
                                                          "une vieille ",
                                                          "J'ai ",
                                                          "Je n'ai pas ",
                                                          "d'Angleterre",
                                                          "au Japon",
                                                          "aux États-Unis",
                                                          "En hiver, ",
                                                          "Au printemps, ",
                                                          "de jeunes ",
                                                          "du pain",
                                                          "de l'eau",
                                                          "pas de pain",
                                                          "She went ",
                                                          "does not eat ",
                                                          "Did she ",
                                                          "is not going to ",
                                                          " an umbrella",
                                                          "a European",
                                                          "mice",
                                                          "geese",
                                                          "knives",
                                                          "children"}) {
    INFO(must);
    CHECK((all.find(must) != std::string::npos || all.find(std::string(must) + "\t") != std::string::npos));
  }
  for (const std::string& never : std::vector<std::string>{
           "Elle est allé ", "Ils sont allé ", "Elles sont allés ", "Il est allée ", "un belle",     "une beau ",
           "une petit ",     "un petite ",     "les petit ",        "des petites ",  "des beaux ",   "a eau",
           "à Japon",        "en Japon",       "à France",          "en Paris",      "tu est ",      "elle sont ",
           "He go ",         "She have ",      "They is ",          "does not eats", "did not went", "Did he went",
           "some apple ",    "any apple ",     "a apples",          "mouses",        "a water",      "du eau",
           "ma amie"}) {
    INFO(never);
    CHECK(all.find(never) == std::string::npos);
  }
}

TEST_CASE("a plural that looks like its singular is never in doubt") {
  int found = 0;
  for (const auto& [name, text] : french_splits()) {
    for (std::size_t i = 0; i < text.source.size(); ++i) {
      const std::string& french = text.source[i];
      if (french.find("pas de souris") == std::string::npos && french.find("pas d'ours") == std::string::npos) continue;
      const std::string& translation = text.target[i];  // Clang captures no structured binding
      INFO(translation);
      CHECK(text.target[i].find(" any ") == std::string::npos);
      ++found;
    }
  }
  CHECK(found > 20);
}

TEST_CASE("copy copies, reverse reverses, sort sorts, in the documented lengths") {
  const std::map<std::string, int> longest = {{"copy", 20}, {"reverse", 25}, {"sort", 15}};
  for (const auto& [task, most] : longest) {
    for (const auto& [name, text] : make_toy(task, 20000, 9)) {
      std::set<std::size_t> lengths;
      for (std::size_t i = 0; i < text.source.size(); ++i) {
        const auto read = [](const std::string& line) {
          std::istringstream in(line);
          std::vector<int> numbers;
          for (int n = 0; in >> n;) numbers.push_back(n);
          return numbers;
        };
        std::vector<int> numbers = read(text.source[i]);
        lengths.insert(numbers.size());
        if (task == "reverse") std::reverse(numbers.begin(), numbers.end());
        if (task == "sort") std::sort(numbers.begin(), numbers.end());
        REQUIRE(numbers == read(text.target[i]));
        REQUIRE(*std::max_element(numbers.begin(), numbers.end()) < 50);
        REQUIRE(*std::min_element(numbers.begin(), numbers.end()) >= 0);
      }
      const bool is_long = name == "test_long";
      CHECK(*lengths.begin() == (is_long ? 26u : 1u));
      CHECK(*lengths.rbegin() == static_cast<std::size_t>(is_long ? 30 : most));
    }
  }
  CHECK(make_toy("reverse", 10, 1).back().first == "test_long");
}

TEST_CASE("an unknown task or an impossible number of pairs is refused with the way to mend it") {
  CHECK_THROWS_WITH_AS(make_toy("fr-de", std::nullopt, 1),
                       "fr-de is not a toy task; the toy tasks are fr-en, copy, reverse, sort", ConfigError);
  CHECK_THROWS_AS(make_toy("copy", 0, 1), ConfigError);
  CHECK_THROWS_AS(make_toy("copy", 1'000'001, 1), ConfigError);
}

TEST_CASE("write_toy writes one line a sentence, and says where it cannot") {
  const TemporaryFolder folder;
  const auto directory = folder / "new" / "deeper";
  const Splits splits = make_toy("fr-en", 20, 1);
  write_toy(splits, directory);
  for (const auto& [name, text] : splits) {
    for (const bool source : {true, false}) {
      std::istringstream file(bytes_of(directory / (name + (source ? ".src" : ".trg"))));
      std::vector<std::string> lines;
      for (std::string line; std::getline(file, line);) lines.push_back(line);
      CHECK(lines == (source ? text.source : text.target));
    }
  }
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 8);
  std::filesystem::remove(directory / "test.trg");
  std::filesystem::create_directories(directory / "test.trg" / "in the way");
  CHECK_THROWS_AS(write_toy(splits, directory), Error);
  CHECK_THROWS_AS(write_toy(splits, directory / "train.src"), DataError);
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 8);  // nothing unfinished is left
}

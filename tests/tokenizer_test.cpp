// The three tokenizers: what they split, and that no text whatever is changed by splitting and joining.
#include "weft/data/tokenizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/data/utf8.h"
#include "weft/data/vocabulary.h"

using namespace weft;
using Tokens = std::vector<std::string>;

namespace {

const std::vector<std::string> kNames = {"word", "whitespace", "character"};

Tokens words(std::string_view line) { return make_tokenizer("word", false)->split(line); }

// Splits, checks that joining gives the normalised text back, and that the tokens are fit for a vocabulary.
void check_round_trip(const Tokenizer& tokenizer, const std::string& line, bool lowercase) {
  CAPTURE(line);
  const std::string expected = normalise_text(line, lowercase);
  const Tokens tokens = tokenizer.split(line);
  CHECK(tokenizer.join(tokens) == expected);
  CHECK(tokenizer.normalise(line) == expected);
  CHECK(tokens.empty() == expected.empty());
  for (const std::string& token : tokens) {
    CHECK(!token.empty());
    CHECK(token.find(' ') == std::string::npos);
    CHECK(std::find(kSpecialTokens.begin(), kSpecialTokens.end(), token) == kSpecialTokens.end());
  }
}

}  // namespace

TEST_CASE("normalise_text changes spaces and case, nothing else") {
  CHECK(normalise_text(" lead  and\ttrail\xC2\xA0", false) == "lead and trail");
  CHECK(normalise_text("mot\xE2\x80\xAF?\xE3\x80\x80x", false) == "mot ? x");
  CHECK(normalise_text("\xC2\xA0 \t", false).empty());
  CHECK(normalise_text("\xC3\x89T\xC3\x89 I", true) == "\xC3\xA9t\xC3\xA9 i");
  CHECK(normalise_text("A\xFF"
                       "B",
                       true) ==
        "a\xFF"
        "b");
  for (const std::string same : {"Wait\xE2\x80\xA6", "\xEF\xB8\xB0", "cafe\xCC\x81", "\xEF\xBC\x91\xEF\xBC\xA1",
                                 "co\xC2\xADoperate", "\xEF\xAC\x81n",
                                 "a\xE2\x80\x8B"
                                 "b",
                                 "\xE2\x80\x99 ' \xCA\xBC"}) {
    CHECK(normalise_text(same, false) == same);
  }
}

TEST_CASE("word: ordinary English and French text splits into plain tokens") {
  CHECK(words("I saw 3.14, no 1,000 (or so).") ==
        Tokens{"I", "saw", "3.14", ",", "no", "1,000", "(", "or", "so", ")", "."});
  CHECK(words("Don't! Mary's can't've they'll I'M") ==
        Tokens{"Do", "n't", "!", "Mary", "'s", "ca", "n't", "'ve", "they", "'ll", "I", "'M"});
  CHECK(words("L'Afrique qu'il jusqu'\xC3\xA0 d'1 aujourd'hui") ==
        Tokens{"L'", "Afrique", "qu'", "il", "jusqu'", "\xC3\xA0", "d'", "1", "aujourd'", "hui"});
  CHECK(words("j't'aime ch't N'T") == Tokens{"j'", "t'", "aime", "ch'", "t", "N'", "T"});
  CHECK(words("Qu\xE2\x80\x99"
              "est-ce l\xE2\x80\x99or it\xE2\x80\x99s") ==
        Tokens{"Qu\xE2\x80\x99", "est-ce", "l\xE2\x80\x99", "or", "it", "\xE2\x80\x99s"});
  CHECK(words("He said \"yes\", \"no\" and 'oui'.") ==
        Tokens{"He", "said", "\"", "yes", "\"", ",", "\"", "no", "\"", "and", "'", "oui", "'", "."});
  CHECK(words("(\"a\") \xE2\x80\x9C"
              "b\xE2\x80\x9D $5 50% [c]; d: e") == Tokens{"(", "\"", "a", "\"", ")", "\xE2\x80\x9C", "b",
                                                          "\xE2\x80\x9D", "$", "5", "50", "%", "[", "c", "]", ";", "d",
                                                          ":", "e"});
  CHECK(words("\xC2\xAB mot \xC2\xBB \xE2\x80\x94 a/b x - y & z") ==
        Tokens{"\xC2\xAB", "mot", "\xC2\xBB", "\xE2\x80\x94", "a", "/", "b", "x", "-", "y", "&", "z"});
  CHECK(words("...\xE2\x80\xA6").size() == 4);
  CHECK(words("caf\xC3\xA9 cafe\xCC\x81 co\xC2\xADop") == Tokens{"caf\xC3\xA9", "cafe\xCC\x81", "co\xC2\xADop"});
  CHECK(words("<s> </s>") == Tokens{"<￭", "s", "￭>", "<", "/", "s", "￭>"});
  CHECK(make_tokenizer("word", true)->split("L'\xC3\x89T\xC3\x89 DON'T") ==
        Tokens{"l'", "\xC3\xA9t\xC3\xA9", "do", "n't"});
}

TEST_CASE("word: marks only where spacing differs from the default, and on the punctuation") {
  CHECK(words("un mot\xC2\xA0? non !") == Tokens{"un", "mot", "▁?", "non", "▁!"});
  CHECK(words("a word? no!") == Tokens{"a", "word", "?", "no", "!"});
  CHECK(words("the boys' house") == Tokens{"the", "boys", "￭'", "house"});
  CHECK(words("one\xE2\x80\x94two 12:30 p.m.") ==
        Tokens{"one", "￭\xE2\x80\x94￭", "two", "12", ":￭", "30", "p", ".￭", "m", "."});
  CHECK(words("\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9!") ==
        Tokens{"\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9", "!"});
  CHECK(words("5 \xE2\x82\xAC non") == Tokens{"5", "\xE2\x82\xAC▁", "non"});
  // A mark of the text is a token of its own; a following word takes the mark that it cannot carry.
  CHECK(words("a ￭ ▁b") == Tokens{"a", "￭", "▁", "￭b"});
  CHECK(words("￭￭▁") == Tokens{"￭", "￭￭", "￭▁"});
}

TEST_CASE("word: join takes whatever a model writes") {
  const auto tokenizer = make_tokenizer("word", false);
  const auto join = [&](const Tokens& tokens) { return tokenizer->join(tokens); };
  CHECK(join({"a", "<unk>", ",", "l'", "<unk>", "."}) == "a <unk>, l'<unk>.");
  CHECK(join({"▁?", "a", "￭b", "", "'s", "c▁", "▁d"}) == "? ab's c d");
  CHECK(join({"a￭", "▁b", "￭", "▁"}) == "a b ￭ ▁");
  CHECK(join({"\"", "\"", "\"", "a"}) == "\"\" \"a");
  CHECK(join({}).empty());
}

TEST_CASE("whitespace and character tokens keep specials and their own escapes apart") {
  const auto whitespace = make_tokenizer("whitespace", false);
  CHECK(whitespace->split("a,  b <s> ￭ <unk>x </s>") == Tokens{"a,", "b", "￭<s>", "￭￭", "<unk>x", "￭</s>"});
  CHECK(make_tokenizer("whitespace", true)->split("<S> A") == Tokens{"￭<s>", "a"});
  const auto character = make_tokenizer("character", false);
  CHECK(character->split("a \xC3\xA9▁￭") == Tokens{"a", "▁", "\xC3\xA9", "￭▁", "￭"});
  CHECK(character->join(Tokens{"a", "▁", "<unk>"}) == "a <unk>");
}

TEST_CASE("an unknown tokenizer is refused with the known ones") {
  CHECK_THROWS_WITH_AS(make_tokenizer("sentences", false),
                       "tokenizer \"sentences\" is not known; use one of word, whitespace, character, unigram, bpe",
                       ConfigError);
}

TEST_CASE("texts that other tools change come back as they were") {
  for (const std::string& name : kNames) {
    for (const bool lowercase : {false, true}) {
      const auto tokenizer = make_tokenizer(name, lowercase);
      for (const std::string& line : std::vector<std::string>{
               "", "   ", "Wait\xE2\x80\xA6", "\xEF\xB8\xB0", "caf\xC3\xA9 cafe\xCC\x81",
               "\xEF\xBC\x91\xEF\xBC\x92\xEF\xBC\x93 \xEF\xBC\xA1\xEF\xBC\xA2", "co\xC2\xADoperate",
               "\xC2\xBD \xC2\xB2 \xEF\xAC\x81n", "a  b   c", " lead and trail ", "\xE2\x80\x99 ' \xCA\xBC",
               "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7",
               "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xE2\x80\x8Fok", "<s> <unk></s>", "&amp; @@ ##a \xE2\x96\x81x",
               "'tis the boys' \"'quoted'\" \" x \"y\" z\"", "rock'n'roll o'clock l'n't N'T x'd'y 5'9\" 1990's",
               "\xD8\x80' \xD8\x80▁ ▁\xCC\x81 \xCC\x81", "\xF0\x9F\x87\xAB\xF0\x9F\x87\xB7\xF0\x9F\x87\xAB"}) {
        check_round_trip(*tokenizer, line, lowercase);
      }
    }
  }
}

TEST_CASE("random text of hard parts comes back as it was") {
  const std::vector<std::string> parts = {"a",
                                          "B",
                                          "n",
                                          "t",
                                          "s",
                                          "ll",
                                          "n't",
                                          "l",
                                          "qu",
                                          "1",
                                          "23",
                                          " ",
                                          " ",
                                          " ",
                                          "  ",
                                          "\t",
                                          "\xC2\xA0",
                                          "\n",
                                          ".",
                                          ",",
                                          "'",
                                          "'",
                                          "\xE2\x80\x99",
                                          "\"",
                                          "\"",
                                          "-",
                                          "\xE2\x80\x91",
                                          "--",
                                          "?",
                                          "!",
                                          ":",
                                          "(",
                                          ")",
                                          "\xC2\xAB",
                                          "\xC2\xBB",
                                          "\xE2\x80\x9C",
                                          "\xE2\x80\x9D",
                                          "/",
                                          "_",
                                          "%",
                                          "$",
                                          "\xE2\x82\xAC",
                                          "\xE2\x80\xA6",
                                          "￭",
                                          "￭",
                                          "▁",
                                          "▁",
                                          "\xCC\x81",
                                          "\xE2\x80\x8D",
                                          "\xE2\x80\x8B",
                                          "\xF0\x9F\x91\xA8",
                                          "\xF0\x9F\x87\xAB",
                                          "\xEF\xB8\x8F",
                                          "\xD8\x80",
                                          "\xD7\xA9",
                                          "\xE4\xBD\xA0",
                                          "\xC4\xB0",
                                          "\xCE\xA3",
                                          "<s>",
                                          "</s>",
                                          "<unk>",
                                          "\x01",
                                          "\x7F",
                                          "\xC3",
                                          "\xA9",
                                          "\xEF",
                                          "\xBF",
                                          "\xAD",
                                          "\xF4\x90\x80\x80",
                                          "\xED\xA0\x80"};
  Random random(11);
  for (const std::string& name : kNames) {
    for (const bool lowercase : {false, true}) {
      const auto tokenizer = make_tokenizer(name, lowercase);
      for (int i = 0; i < 8000; ++i) {
        std::string line;
        for (std::uint64_t length = random.below(12); length > 0; --length) line += parts[random.below(parts.size())];
        check_round_trip(*tokenizer, line, lowercase);
      }
      for (int i = 0; i < 2000; ++i) {  // any code points at all
        std::string line;
        for (std::uint64_t length = random.below(8); length > 0; --length) {
          const auto value = static_cast<char32_t>(random.below(random.below(2) == 0 ? 0x3000 : 0x110000));
          if (value < 0xD800 || value > 0xDFFF) append_code_point(line, value);
        }
        check_round_trip(*tokenizer, line, lowercase);
      }
    }
  }
}

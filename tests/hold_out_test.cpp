// Pairs held out of a training text: no sentence on both sides, and the same choice for any order.
#include "weft/data/hold_out.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/data/text_file.h"
#include "weft/data/toy.h"
#include "weft/data/utf8.h"

using namespace weft;

namespace {

std::vector<Part> parts_of(const ParallelText& text, Index valid, Index test, std::uint64_t seed = 1) {
  std::vector<FoldedPair> pairs;
  fold_pairs(text, pairs);
  return hold_out(pairs, valid, test, seed);
}

// Sentences from a small set, so that many pairs hang together, in different cases and spacings.
ParallelText linked(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  ParallelText text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(random.below(count)), other = std::to_string(random.below(count));
    text.source.push_back(random.below(2) == 0 ? "\xC3\x89t\xC3\xA9  " + number
                                               : "\xC3\xA9t\xC3\xA9 " + number + "\xC2\xA0");
    text.target.push_back(random.below(2) == 0 ? "SUMMER " + other : " Summer\t" + other);
  }
  return text;
}

}  // namespace

TEST_CASE("fold_text ignores case, spaces and composition, and nothing else") {
  CHECK(fold_text("  The\xC2\xA0 Cat\t") == "the cat");
  CHECK(fold_text("\xC3\x89T\xC3\x89") == fold_text("e\xCC\x81t\xC3\xA9"));
  CHECK(fold_text("STRASSE") == fold_text("Stra\xC3\x9F"
                                          "e"));
  CHECK(fold_text("\xCE\xA3") == fold_text("\xCF\x82"));  // both sigmas
  CHECK(fold_text("cat.") != fold_text("cat"));
  CHECK(fold_text("ete") != fold_text("\xC3\xA9t\xC3\xA9"));
  CHECK(fold_text("a b") != fold_text("ab"));
  CHECK(fold_text("  ").empty());
  CHECK(fold_text("x\xFFY") == "x\xFFY");
  CHECK(fold_text("\xC3\x89\xFF") == "\xC3\x89\xFF");
}

TEST_CASE("a line of combining marks is put into order in a time that grows with the line, not with its square") {
  constexpr int kMarks = 200000;
  std::string above, below, both, tibetan, apart;
  for (int i = 0; i < kMarks; ++i) {
    above += "\xCC\x81";
    below += "\xCC\x96";
    both += "\xE0\xBD\xB3";  // U+0F73, which is no mark, and is made of two
    tibetan += "\xE0\xBD\xB1";
    apart += "\xE0\xBD\xB2";
  }
  CHECK(fold_text("A" + above + below) == "\xC3\xA1" + below + above.substr(2));
  CHECK(fold_text(both) == tibetan + apart);
}

TEST_CASE("the numbers are exact and no sentence is on both sides of a cut") {
  const ParallelText text = linked(3000, 1);
  const auto parts = parts_of(text, 100, 200);
  CHECK(std::count(parts.begin(), parts.end(), Part::kValid) == 100);
  CHECK(std::count(parts.begin(), parts.end(), Part::kTest) == 200);
  for (const auto* side : {&text.source, &text.target}) {
    std::map<std::string, std::set<Part>> where;
    for (std::size_t i = 0; i < parts.size(); ++i) where[fold_text((*side)[i])].insert(parts[i]);
    CHECK(where.size() < 2500);  // so some sentences do occur twice
    for (const auto& [sentence, in] : where) CHECK_MESSAGE(in.size() == 1, sentence);
  }
}

TEST_CASE("the choice depends on the seed and the pairs, not on their order") {
  const ParallelText text = linked(2000, 2);
  const auto chosen = [](const ParallelText& pairs, std::uint64_t seed) {
    const auto parts = parts_of(pairs, 50, 50, seed);
    std::multiset<std::string> held_out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == Part::kValid) held_out.insert(pairs.source[i] + "\t" + pairs.target[i]);
    }
    return held_out;
  };
  ParallelText reversed = text;
  std::reverse(reversed.source.begin(), reversed.source.end());
  std::reverse(reversed.target.begin(), reversed.target.end());
  CHECK(chosen(text, 1) == chosen(reversed, 1));
  CHECK(chosen(text, 1) != chosen(text, 2));
}

TEST_CASE("pairs with a blank side link nothing and stay in the training text") {
  ParallelText text;
  for (int i = 0; i < 20; ++i) {
    text.source.push_back(i % 2 == 0 ? "" : std::to_string(i));
    text.target.push_back(std::to_string(i / 2));
  }
  const auto parts = parts_of(text, 6, 3);
  for (std::size_t i = 0; i < 20; i += 2) CHECK(parts[i] == Part::kTrain);
  CHECK(std::count(parts.begin(), parts.end(), Part::kTrain) == 11);
}

TEST_CASE("numbers that cannot be had are refused with what can") {
  const ParallelText five{{"a", "b", "c", "d", "e"}, {"a", "b", "c", "d", "e"}};
  CHECK_THROWS_SAYING(parts_of(five, 3, 2), "ask for 5 pairs, but the training text has 5", DataError);

  const ParallelText chain{{"a", "A", "b", "B", "c"}, {"1", "2", "2", "3", "4"}};  // the first four hang together
  CHECK_THROWS_SAYING(parts_of(chain, 2, 0), "only 1 of 2 pairs for validation", DataError);
  const auto parts = parts_of(chain, 1, 0);
  CHECK(parts == std::vector<Part>{Part::kTrain, Part::kTrain, Part::kTrain, Part::kTrain, Part::kValid});
  CHECK(parts_of(chain, 4, 0)[4] == Part::kTrain);
}

TEST_CASE("pairs written to files are read as they are, whatever a reader drops") {
  const TemporaryFolder folder;
  const std::string mark = "\xEF\xBB\xBF";
  const ParallelText marks{{mark + "a", mark + "b", "", "c\r", "\r\r"}, {"A\r", mark, "d" + mark, "\r", ""}};
  const ParallelText plain{{"a"}, {"b"}};
  write_toy({{"valid", marks}, {"test", plain}, {"none", {}}}, folder / "out");
  const auto read = [&](const char* name) { return read_lines(folder / "out" / name); };
  CHECK(read("valid.src") == marks.source);
  CHECK(read("valid.trg") == marks.target);
  CHECK(bytes_of(folder / "out" / "test.src") == "a\n");
  CHECK(bytes_of(folder / "out" / "none.src").empty());
}

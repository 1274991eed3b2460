// Text files with every fault that users bring, and the code points below them.
#include "weft/data/text_file.h"

#include <doctest/doctest.h>

#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "limited_allocation.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/data/parallel_reader.h"
#include "weft/data/utf8.h"

using namespace weft;
using Lines = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

/// The text of the DataError that an action throws.
template <class Action>
std::string error_of(Action action) {
  return thrown_text<DataError>(action);
}

}  // namespace

TEST_CASE("read_lines keeps blank lines and a last line without newline") {
  const TemporaryFolder folder;
  const std::string nbsp = "\xC2\xA0";
  CHECK(read_lines(folder.write("blank", "Hello.\n\n   \n" + nbsp + "\nGoodbye.\n")) ==
        Lines{"Hello.", "", "   ", nbsp, "Goodbye."});
  CHECK(read_lines(folder.write("last", "Hello.\nGoodbye.")) == Lines{"Hello.", "Goodbye."});
  CHECK(read_lines(folder.write("empty", "")).empty());
  CHECK(read_lines(folder.write("three", "\n\n\n")) == Lines{"", "", ""});
}

TEST_CASE("read_lines drops one byte order mark and the CR of CR LF, and nothing else") {
  const TemporaryFolder folder;
  CHECK(read_lines(folder.write("bom", "\xEF\xBB\xBFOne.\nTwo.\n")) == Lines{"One.", "Two."});
  CHECK(read_lines(folder.write("two",
                                "\xEF\xBB\xBF\xEF\xBB\xBF"
                                "a\n\xEF\xBB\xBF"
                                "b\n")) == Lines{"\xEF\xBB\xBF"
                                                 "a",
                                                 "\xEF\xBB\xBF"
                                                 "b"});
  CHECK(read_lines(folder.write("only", "\xEF\xBB\xBF")) == Lines{""});
  CHECK(read_lines(folder.write("crlf", "a\r\nb\rc\r\n\r\nd\r\r\n")) == Lines{"a", "b\rc", "", "d\r"});
  CHECK(read_lines(folder.write("breaks",
                                "a\xE2\x80\xA8"
                                "b\xC2\x85"
                                "c\f\v\n\"d\n")) == Lines{"a\xE2\x80\xA8"
                                                          "b\xC2\x85"
                                                          "c\f\v",
                                                          "\"d"});
}

TEST_CASE("read_lines refuses UTF-16, NUL and every form that is not UTF-8, with file, line and byte") {
  const TemporaryFolder folder;
  const std::string little("\xFF\xFEO\0n\0\n\0", 8), big("\xFE\xFF\0O\0n\0\n", 8);
  for (const std::string& bytes : {little, big}) {
    const std::string error = error_of([&] { read_lines(folder.write("sixteen.en", bytes)); });
    CHECK(contains(error, "sixteen.en: this is UTF-16; "));
    CHECK(contains(error, "iconv"));
  }
  const std::string nul("Good day.\nGood\0night.\nBye.\n", 27);
  CHECK(contains(error_of([&] { read_lines(folder.write("nul.en", nul)); }), "nul.en:2:5: NUL byte"));

  const struct {
    std::string name, bytes, where;
  } bad[] = {{"latin1.fr",
              "Une \xE9"
              "cole.\nDeux.\n",
              "latin1.fr:1:5: not UTF-8 (byte 0xE9)"},
             {"cut.fr", "Deux.\nUne \xC3\n", "cut.fr:2:5: not UTF-8 (byte 0xC3)"},
             {"cut4.fr", "Deux.\nUne \xF0\x9F\x98", "cut4.fr:2:5: not UTF-8 (byte 0xF0)"},
             {"overlong.fr",
              "A\xC0\xAF"
              "B.\n",
              "overlong.fr:1:2: not UTF-8 (byte 0xC0)"},
             {"overlong3.fr",
              "\xC3\xA9\xE0\x80\xAF"
              "B.\n",
              "overlong3.fr:1:3: not UTF-8 (byte 0xE0)"},
             {"surrogate.fr",
              "A\xED\xA0\x80"
              "B.\n",
              "surrogate.fr:1:2: not UTF-8 (byte 0xED)"},
             {"above.fr",
              "A\xF4\x90\x80\x80"
              "B.\n",
              "above.fr:1:2: not UTF-8 (byte 0xF4)"},
             {"five.fr",
              "A\xF8\x88\x80\x80\x80"
              "B.\n",
              "five.fr:1:2: not UTF-8 (byte 0xF8)"},
             {"tail.fr",
              "A\x80"
              "B.\n",
              "tail.fr:1:2: not UTF-8 (byte 0x80)"}};
  for (const auto& item : bad) {
    CAPTURE(item.name);
    const std::string error = error_of([&] { read_lines(folder.write(item.name, item.bytes)); });
    CHECK(contains(error, item.where));
  }
}

TEST_CASE("read_lines says why a file cannot be read") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { read_lines(folder.path() / "none.txt"); }), "none.txt: there is no such file"));
  CHECK(contains(error_of([&] { read_lines(folder.path()); }), ": this is a directory"));
  CHECK(contains(error_of([&] { read_lines(folder.write("file", "a") / "below"); }), "below: "));
}

TEST_CASE("a text that is too large for the memory is named") {
  const TemporaryFolder folder;
  const fs::path path = folder.write("blank.en", std::string(50'000, '\n'));
  const TextFiles files{path.string(), folder.write("blank.fr", std::string(50'000, '\n')).string(), "", 1, 2};
  const std::string too_large = "blank.en: this text is too large for the memory that is free; ";
  const LimitedAllocation limit(500'000);
  CHECK_THROWS_SAYING(read_lines(path), too_large, DataError);
  CHECK_THROWS_SAYING(read_parallel(path, path), too_large, DataError);
  CHECK_THROWS_SAYING(read_blocks(std::span(&files, 1), [](const ParallelText&) {}), "blank.en, ", DataError);
  CHECK_THROWS_SAYING(read_blocks(std::span(&files, 1), [](const ParallelText&) {}), "blank.fr: this text is too large",
                      DataError);
}

TEST_CASE("text_problem and replace_invalid_text serve a stream that must keep its lines") {
  CHECK(!text_problem("").has_value());
  CHECK(!text_problem("caf\xC3\xA9 \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF\t\x01").has_value());
  CHECK(text_problem("caf\xC3\xA9 \xE9").value().column == 7);
  Index count = 3;
  CHECK(replace_invalid_text(std::string("a\xED\xA0\x80"
                                         "b\0\xC3\xA9\xC3",
                                         9),
                             count) ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD");
  CHECK(count == 8);
  std::istringstream in(
      "\xEF\xBB\xBF"
      "a\xC3\n\n b\r\nlast");
  LineReader reader(in, "input");
  Lines lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  CHECK(lines == Lines{"a\xC3", "", " b", "last"});
  CHECK(reader.line_number() == 4);
}

TEST_CASE("read_parallel never shifts pairs and refuses unequal counts") {
  const TemporaryFolder folder;
  const fs::path en = folder.write("train.en", "One.\nTwo.\nThree.\n");
  const Lines french{"Un.", "Deux.", "Trois."};
  CHECK(read_parallel(en, folder.write("equal.fr", "Un.\nDeux.\nTrois.")).target == french);

  const fs::path longer = folder.write("longer.fr", "Un.\nDeux.\nTrois.\n\n\xC2\xA0\n");
  CHECK(read_parallel(en, longer).target == french);
  CHECK(read_parallel(longer, en).source == french);

  CHECK(read_parallel(folder.write("end.en", "One.\n\n"), folder.write("end.fr", "Un.\nDeux.\n\n")).source ==
        Lines{"One.", ""});

  const fs::path shorter = folder.write("shorter.fr", "Un.\nDeux.\n");
  const std::string error = error_of([&] { read_parallel(en, shorter); });
  CHECK(contains(error, "train.en has 3 lines"));
  CHECK(contains(error, "shorter.fr has 2"));
  CHECK(contains(error_of([&] { read_parallel(shorter, en); }), "shorter.fr has 2 lines"));
  CHECK(
      contains(error_of([&] { read_parallel(en, folder.write("gap.fr", "Un.\nDeux.\n\nTrois.\n")); }), "gap.fr has 4"));

  const ParallelText pairs = read_parallel(folder.write("hole.en", "One.\n\nThree.\nFour.\nFive.\n"),
                                           folder.write("hole.fr", "Un.\nDeux.\nTrois.\n\nCinq.\n"));
  CHECK(pairs.source == Lines{"One.", "", "Three.", "Four.", "Five."});
  CHECK(pairs.target == Lines{"Un.", "Deux.", "Trois.", "", "Cinq."});
}

TEST_CASE("is_blank sees through every kind of space and zero width") {
  for (const char* blank : {"", " ", "\t \r", "\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x89", "\xE3\x80\x80",
                            "\xE2\x80\x8B", "\xE2\x81\xA0", "\xEF\xBB\xBF", "\xC2\x85", "\xE2\x80\xA8\xE2\x80\xA9"}) {
    CAPTURE(blank);
    CHECK(is_blank(blank));
  }
  for (const char* text : {".", " a ", "\x01", "\xCC\x81", "\xE2\x80\x8B.", "\xFF"}) CHECK(!is_blank(text));
}

TEST_CASE("code points: decoding, encoding, classes, lower case and clusters") {
  for (const char32_t value : {U'a', U'\u00E9', U'\u20AC', U'\U0001F600', U'\U0010FFFF'}) {
    std::string text;
    append_code_point(text, value);
    CHECK(code_point_at(text, 0).value == value);
    CHECK(code_point_at(text, 0).length == text.size());
  }
  CHECK(code_point_at("\xC3", 0).value == kInvalidCodePoint);
  CHECK(code_point_at("\xC3", 0).length == 1);
  CHECK(is_symbol(U'\u00AB'));
  CHECK(is_symbol(U'\u20AC'));
  CHECK(!is_symbol(U'\u00E9'));
  CHECK(!is_symbol(U'7'));
  CHECK(is_letter(U'\u0153'));
  CHECK(!is_letter(U'\u0301'));
  CHECK(is_number(U'\uFF11'));
  CHECK(to_lower(U'\u00C9') == U'\u00E9');
  CHECK(to_lower(U'\u0130') == U'i');
  CHECK(to_lower(U'!') == U'!');
  CHECK(cluster_end("e\xCC\x81x", 0) == 3);
  CHECK(cluster_end("ab", 0) == 1);
  const std::string family = "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9";
  CHECK(cluster_end(family + "!", 0) == family.size());
}

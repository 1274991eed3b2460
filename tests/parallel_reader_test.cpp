// Sentence pairs from plain, gzipped and TSV files, block by block.
#include "weft/data/parallel_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gzip.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"

using namespace weft;
using Lines = std::vector<std::string>;

namespace {

struct Read {
  ParallelText text;
  ShortLines short_lines;
  std::vector<std::size_t> blocks;
};

Read read(const std::vector<TextFiles>& files) {
  Read result;
  result.short_lines = read_blocks(files, [&](const ParallelText& block) {
    REQUIRE(block.source.size() == block.target.size());
    result.blocks.push_back(block.source.size());
    result.text.source.insert(result.text.source.end(), block.source.begin(), block.source.end());
    result.text.target.insert(result.text.target.end(), block.target.begin(), block.target.end());
  });
  return result;
}

TextFiles pair_of(const std::filesystem::path& source, const std::filesystem::path& target) {
  return {source.string(), target.string(), "", 1, 2};
}
TextFiles tsv(const std::filesystem::path& file, Index source = 1, Index target = 2) {
  return {"", "", file.string(), source, target};
}

}  // namespace

TEST_CASE("gzip is read like what it holds, with several members and padding, whatever its name") {
  const TemporaryFolder folder;
  const std::string text = "One.\n\nThree\r\nFour";
  const Lines lines{"One.", "", "Three", "Four"};
  CHECK(read_lines(folder.write("plain", text)) == lines);
  CHECK(read_lines(folder.write("a.gz", gzipped(text))) == lines);
  CHECK(read_lines(folder.write("hidden", gzipped(text))) == lines);
  CHECK(read_lines(folder.write("b.gz", gzipped("One.\n\nTh") + gzipped("") + gzipped("ree\r\nFour"))) == lines);
  CHECK(read_lines(folder.write("c.gz", gzipped(text) + std::string(600, '\0'))) == lines);
  CHECK(read_lines(folder.write("bom.gz", gzipped("\xEF\xBB\xBF" + text))) == lines);
  CHECK(read_lines(folder.write("empty.gz", gzipped(""))).empty());
  std::string large;
  for (int i = 0; i < 40000; ++i) large += "line " + std::to_string(i * 7919) + "\n";
  const Lines many = read_lines(folder.write("large.gz", gzipped(large)));
  REQUIRE(many.size() == 40000);
  CHECK(many[39999] == "line " + std::to_string(39999 * 7919));
  CHECK(read_lines(folder.write("unit", "\x1F odd\n")) == Lines{"\x1F odd"});
}

TEST_CASE("gzip that is cut, altered, followed by rubbish or none at all is refused by name") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  const std::string good = gzipped(text);
  const auto refused = [&](const std::string& bytes) {
    CHECK_THROWS_SAYING(read_lines(folder.write("bad.gz", bytes)), "bad.gz: damaged gzip data", DataError);
  };
  for (const std::size_t size : {good.size() - 1, good.size() - 8, good.size() / 2, std::size_t{11}, std::size_t{3}}) {
    refused(good.substr(0, size));
  }
  refused("");
  refused("plain text\n");
  refused(good + "rubbish");
  refused(good + std::string(5, '\0') + "rubbish");
  std::string sum = good;
  sum[good.size() - 6] = static_cast<char>(sum[good.size() - 6] ^ 1);
  refused(sum);
  std::string middle = good;
  middle[good.size() / 2] = static_cast<char>(middle[good.size() / 2] ^ 0x55);
  refused(middle);
}

TEST_CASE("TSV has no quoting: columns are chosen, more do no harm, too few are skipped and counted") {
  const TemporaryFolder folder;
  const auto file = folder.write("a.tsv",
                                 "Red\tRouge\n\"Blue\tBleu\nGreen \"4\"\tVert\tCC-BY\nGrey\n\nBlack\t\n\tBlanc\n"
                                 "'Pink\tRose\"\n");
  const Read all = read({tsv(file)});
  CHECK(all.text.source == Lines{"Red", "\"Blue", "Green \"4\"", "Black", "", "'Pink"});
  CHECK(all.text.target == Lines{"Rouge", "Bleu", "Vert", "", "Blanc", "Rose\""});
  CHECK(all.short_lines.count == 2);
  CHECK(all.short_lines.first == file.string() + ":4");
  const Read third = read({tsv(file, 3, 1)});
  CHECK(third.text == ParallelText{{"CC-BY"}, {"Green \"4\""}});
  CHECK(third.short_lines.count == 7);
  CHECK(read({tsv(folder.write("b.tsv.gz", gzipped("a\tb\r\nc\td\r\n")), 2, 1)}).text ==
        ParallelText{{"b", "d"}, {"a", "c"}});
  CHECK_THROWS_SAYING(read({tsv(file, 1, 4)}), "a.tsv: no line has 4 columns", DataError);
  CHECK_THROWS_SAYING(read({tsv(folder.write("c.tsv", "a\t\nb\t \n"))}), "c.tsv: column 2 has no text", DataError);
  CHECK_THROWS_SAYING(read({tsv(folder.write("d.tsv", "a\tb\nc\td\xE9\n"))}), "d.tsv:2:4: not UTF-8", DataError);
}

TEST_CASE("a TAB in two plain files is text") {
  const TemporaryFolder folder;
  CHECK(read({pair_of(folder.write("a", "x\ty\n"), folder.write("b", "z\n"))}).text == ParallelText{{"x\ty"}, {"z"}});
}

TEST_CASE("several texts follow each other; each is checked by itself") {
  const TemporaryFolder folder;
  const auto one = pair_of(folder.write("a.src", "a\n\nb\n"), folder.write("a.trg.gz", gzipped("A\nB\nC\n\n \n")));
  const auto two = tsv(folder.write("b.tsv", "c\tC\nd\n"));
  const Read both = read({one, two});
  CHECK(both.text == ParallelText{{"a", "", "b", "c"}, {"A", "B", "C", "C"}});
  CHECK(both.short_lines.first.ends_with("b.tsv:2"));
  CHECK(both.blocks == std::vector<std::size_t>{4});
  const auto longer = pair_of(folder.write("c.src", "a\n"), folder.write("c.trg", "A\n\nC\n"));
  CHECK_THROWS_SAYING(read({one, longer}), "c.src has 1 lines but", DataError);
  CHECK_THROWS_SAYING(read({longer, one}), "c.trg has 3", DataError);
  const auto blank = pair_of(folder.write("d.src", "a\n"), folder.write("d.trg", " \n"));
  CHECK_THROWS_SAYING(read({one, blank}), "d.trg: has no text", DataError);
  const auto bad = pair_of(folder.write("e.src", "a\nb\n"), folder.write("e.trg", "A\n\xFF\n"));
  CHECK_THROWS_SAYING(read({one, bad}), "e.trg:2:1: not UTF-8 (byte 0xFF)", DataError);
  CHECK_THROWS_SAYING(read({one, pair_of(folder / "none", folder / "a.src")}), "none: there is no such file",
                      DataError);
}

TEST_CASE("blocks have a bounded size and lose nothing between them") {
  const TemporaryFolder folder;
  std::string source, target;
  const Index pairs = 2 * kBlockPairs + 5;
  for (Index i = 0; i < pairs; ++i) {
    source += std::to_string(i) + "\n";
    target += std::to_string(-i) + "\n";
  }
  const Read all = read({pair_of(folder.write("a", source), folder.write("b", target))});
  CHECK(all.blocks == std::vector<std::size_t>{kBlockPairs, kBlockPairs, 5});
  REQUIRE(static_cast<Index>(all.text.source.size()) == pairs);
  for (const Index i : {Index{0}, kBlockPairs - 1, kBlockPairs, 2 * kBlockPairs, pairs - 1}) {
    CHECK(all.text.source[static_cast<std::size_t>(i)] == std::to_string(i));
    CHECK(all.text.target[static_cast<std::size_t>(i)] == std::to_string(-i));
  }
}

TEST_CASE("a block of long lines ends after some text, as a small file may unpack to much") {
  const TemporaryFolder folder;
  const std::string line(kBlockBytes / 9, 'a');
  std::string text;
  for (int i = 0; i < 6; ++i) text += line + "\n";
  const auto file = folder.write("a.gz", gzipped(text));
  const Read all = read({pair_of(file, file)});
  CHECK(all.blocks == std::vector<std::size_t>{5, 1});  // 10 lines have more than a block's text
  CHECK(all.text.source == Lines(6, line));
  CHECK(all.text.target == all.text.source);
}

// weft data check through the real program: every planted fault is found, at its place, whatever else is wrong.
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "cli.h"
#include "gzip.h"
#include "weft/data/parallel_reader.h"
#include "weft/train/checked_text.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::gzipped;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

struct Checked {
  int code;
  Json json;
};

Checked check(const Words& words) {
  const auto before = everything();
  const Outcome outcome = run_weft(Words{"data", "check"} + words + Words{"--json"});
  CAPTURE(outcome.err);
  REQUIRE(Json::accept(outcome.out));
  CHECK(outcome.err.empty());
  CHECK(everything() == before);
  return {outcome.code, Json::parse(outcome.out)};
}

const Json& text_of(const Json& json, const std::string& split) {
  for (const Json& text : json["texts"]) {
    if (text["split"] == split) return text;
  }
  FAIL("no text " << split);
  return json;
}

/// A finding as "COUNT: FILE:LINE:BYTE ...", its places in order; empty if there is none.
std::string found(const Json& text, const std::string& name) {
  for (const Json& finding : text["findings"]) {
    if (finding["name"] != name) continue;
    std::string shown = std::to_string(finding["count"].get<int>()) + ":";
    for (const Json& place : finding["first"]) {
      shown.append(" ").append(place["file"].get<std::string>());
      for (const char* number : {"line", "byte"}) {
        if (place.contains(number)) shown.append(":").append(std::to_string(place[number].get<int>()));
      }
    }
    return shown;
  }
  return "";
}

std::string note(const Json& text, const std::string& name, std::size_t i = 0) {
  for (const Json& finding : text["findings"]) {
    if (finding["name"] == name) return finding["first"].at(i).value("note", "");
  }
  return "no such finding";
}

std::string sentence(int words, const std::string& word) {
  std::string text;
  for (int i = 0; i < words; ++i) text += (i == 0 ? "" : " ") + word + std::to_string(i);
  return text;
}

const char* const kModel = R"("model": {"d_model": 16, "heads": 2, "max_length": 20})";

}  // namespace

TEST_CASE("every fault of a corpus that holds all of them is found, with its line") {
  workplace();
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"\xEF\xBB\xBFthe first line", "la ligne une"},  // 1: a byte order mark
      {"a cat\r", "un chat"},                          // 2: CR LF
      {"", " "},                                       // 3: blank
      {"", "seul"},                                    // 4: blank source
      {"alone", " \xC2\xA0"},                          // 5: blank target
      {std::string("nul\0byte", 8), "octet nul"},      // 6: NUL
      {"latin \xE9t", "un mot"},                       // 7 to 11: not UTF-8
      {"stray\x80", "deux mots"},                      //
      {"over \xC0\xAF", "trois mots"},                 //
      {"surr \xED\xA0\x80", "quatre mots"},            //
      {"above \xF4\x90\x80\x80", "cinq mots"},         //
      {"line\xE2\x80\xA8sep", "six mots"},             // 12 to 17: other line ends
      {"para\xE2\x80\xA9sep", "sept mots"},            //
      {"next\xC2\x85line", "huit mots"},               //
      {"vertical\vtab", "neuf mots"},                  //
      {"form\ffeed", "dix mots"},                      //
      {"lone\rreturn", "onze mots"},                   //
      {"bell\a", "douze mots"},                        // 18: another control character
      {"inner\xEF\xBB\xBFmark", "treize mots"},        // 19: U+FEFF
      {"A  Cat", "UN CHAT"},                           // 20: 2 again
      {"same text", "Same  Text"},                     // 21: equal sides
      {sentence(12, "w"), "tout"},                     // 22: uneven
      {sentence(13, "w"), sentence(13, "m")},          // 23: too long
      {"in both", "dans les deux"},                    // 24: also in the validation text
  };
  std::string source, target;
  for (const auto& [s, t] : lines) {
    source += s + "\n";
    target += t + "\n";
  }
  put("p.src", source + "surplus\n");
  put("p.trg.gz", gzipped(target));
  put("p.tsv", "id\tone dog\tun chien\nid\tonly\n\nid\t\"quoted\tmot\textra\n\tfive\tcinq\n");
  put("v.src", "in  BOTH\nnew one\nunheard words\n");
  put("v.trg", "Dans les deux\nun chat\ninconnu\n");
  put("planted.json", std::string(R"({"data": {"max_length": 12,
    "train": [{"source": "p.src", "target": "p.trg.gz"}, {"tsv": "p.tsv", "source_column": 2, "target_column": 3}],
    "valid_source": "v.src", "valid_target": "v.trg"}, )") +
                          kModel + "}");

  const auto [code, json] = check({"planted.json", "--limit", "10"});
  CHECK(code == 2);
  const Json& train = text_of(json, "train");
  CHECK(train["files"] == Json{"p.src", "p.trg.gz", "p.tsv"});
  CHECK(found(train, "unequal_lines") == "1: p.src:25");
  CHECK(note(train, "unequal_lines") == "p.src has 25 lines, p.trg.gz has 24");
  CHECK(found(train, "invalid_utf8") == "5: p.src:7:7 p.src:8:6 p.src:9:6 p.src:10:6 p.src:11:7");
  CHECK(note(train, "invalid_utf8", 0) == "byte 0xE9, a sequence that is cut");
  CHECK(note(train, "invalid_utf8", 1) == "byte 0x80, in no sequence");
  CHECK(note(train, "invalid_utf8", 2) == "byte 0xC0, an overlong form");
  CHECK(note(train, "invalid_utf8", 3) == "byte 0xED, a surrogate");
  CHECK(note(train, "invalid_utf8", 4) == "byte 0xF4, above U+10FFFF");
  CHECK(found(train, "nul") == "1: p.src:6:4");
  CHECK(found(train, "byte_order_mark") == "1: p.src:1");
  CHECK(found(train, "inner_byte_order_mark") == "1: p.src:19:6");
  CHECK(found(train, "carriage_returns") == "1: p.src:2");
  CHECK(found(train, "line_separators") == "6: p.src:12:5 p.src:13:5 p.src:14:5 p.src:15:9 p.src:16:5 p.src:17:5");
  CHECK(note(train, "line_separators", 0) == "U+2028");
  CHECK(note(train, "line_separators", 2) == "U+0085");
  CHECK(note(train, "line_separators", 5) == "U+000D");
  CHECK(found(train, "control_characters") == "1: p.src:18:5");
  CHECK(found(train, "too_few_columns") == "2: p.tsv:2 p.tsv:3");
  CHECK(found(train, "surplus_columns") == "1: p.tsv:4");
  CHECK(found(train, "both_blank") == "1: p.src:3");
  CHECK(found(train, "source_blank") == "1: p.src:4");
  CHECK(found(train, "target_blank") == "1: p.trg.gz:5");
  CHECK(found(train, "too_long") == "1: p.src:23");
  CHECK(note(train, "too_long") == "13 and 13 tokens");
  CHECK(found(train, "uneven_lengths") == "1: p.src:22");
  CHECK(found(train, "equal_sides") == "1: p.src:21");
  CHECK(found(train, "duplicates") == "1: p.src:20");
  CHECK(note(train, "duplicates") == "as p.src:2");
  for (const char* absent : {"unreadable", "no_text", "surplus_blank_lines", "unknown_tokens", "pair_in_training"}) {
    CHECK(found(train, absent).empty());
  }
  CHECK(train["pairs"] == 27);
  CHECK(train["kept"] == 23);
  CHECK(train["dropped"] == Json{{"blank", 3}, {"too_long", 1}});
  CHECK(train["longest_allowed"] == 12);
  CHECK(train["source"]["lengths"]["max"] == 13);
  CHECK(train["target"]["unknown_rate"] == 0);

  const Json& valid = text_of(json, "valid");
  CHECK(valid["pairs"] == 3);
  CHECK(valid["kept"] == 3);
  CHECK(found(valid, "pair_in_training") == "1: v.src:1");
  CHECK(note(valid, "pair_in_training") == "as p.src:24");
  CHECK(found(valid, "source_in_training") == "1: v.src:1");
  CHECK(found(valid, "target_in_training") == "2: v.trg:1 v.trg:2");
  CHECK(note(valid, "target_in_training", 1) == "as p.trg.gz:2");
  CHECK(found(valid, "unknown_tokens") == "3: v.src:1 v.src:2 v.src:3");
  CHECK(note(valid, "unknown_tokens", 0) == "BOTH");
  CHECK(note(valid, "unknown_tokens", 1) == "new");
  CHECK(valid["target"]["unknown_rate"].get<double>() == doctest::Approx(2.0 / 6));  // Dans, inconnu

  CHECK(json["usable"] == false);
  REQUIRE(json["problems"].size() == 3);
  CHECK(contains(json["problems"][0].get<std::string>(), "train: lines that are not UTF-8: 5, the first is p.src:7:7"));
  CHECK(contains(json["problems"][1].get<std::string>(), "p.src:6:4"));
  CHECK(contains(json["problems"][2].get<std::string>(), "p.src has 25 lines, p.trg.gz has 24"));

  const Json few = check({"planted.json", "--limit", "2"}).json;
  CHECK(found(text_of(few, "train"), "invalid_utf8") == "5: p.src:7:7 p.src:8:6");

  // The same in words.
  const Outcome words = run_weft({"data", "check", "planted.json", "--limit", "10"});
  CHECK(words.code == 2);
  for (const char* part :
       {"27 pairs, 23 kept, 4 dropped: 3 blank on a side, 1 with more than 12 tokens on a side",
        "FAULT: lines that are not UTF-8: 5\n    p.src:7:7 (byte 0xE9", "    p.src:20 (as p.src:2)\n", "p.tsv:4",
        "training would be refused:\n  train: lines that are not UTF-8: 5"}) {
    CAPTURE(part);
    CHECK(contains(words.out, part));
  }
}

TEST_CASE("a block of long lines ends after some text, as in training") {
  workplace();
  const std::string line(weft::kBlockBytes / 9, 'a');
  std::string text;
  for (int i = 0; i < 6; ++i) text += line + "\n";
  put("long.gz", gzipped(text));
  weft::CheckedText checked("train", {{"long.gz", "long.gz", "", 1, 2}});
  weft::Findings findings(3);
  checked.scan(findings);
  std::vector<weft::Index> first, lines;
  checked.read([&](const weft::ParallelText& block, weft::Index begin) {
    first.push_back(begin);
    lines.push_back(static_cast<weft::Index>(block.source.size()));
  });
  CHECK(first == std::vector<weft::Index>{0, 5});
  CHECK(lines == std::vector<weft::Index>{5, 1});
}

TEST_CASE("a file that cannot be read hides nothing of the others") {
  workplace();
  const std::string packed = gzipped("one\ntwo\nthree\n");
  put("cut.gz", packed.substr(0, packed.size() - 9));
  put("utf16", std::string("\xFF\xFEo\0n\0e\0\n\0", 10));
  put("blank", "\n\n");
  put("good", "a b\nc\n\n");
  put("unreadable.json", std::string(R"({"data": {"max_length": 12,
    "train": [{"source": "good", "target": "cut.gz"}, {"source": "utf16", "target": "good"},
              {"source": "missing", "target": "good"}, {"source": "good", "target": "blank"}, {"tsv": "good"},
              {"source": "good", "target": "good"}],
    "valid": [{"source": "good", "target": "good"}]}, )") +
                             kModel + "}");
  const auto [code, json] = check({"unreadable.json"});
  CHECK(code == 2);
  const Json& train = text_of(json, "train");
  CHECK(found(train, "unreadable") == "3: cut.gz utf16 missing");
  CHECK(contains(note(train, "unreadable", 0), "damaged gzip"));
  CHECK(contains(note(train, "unreadable", 1), "UTF-16"));
  CHECK(contains(note(train, "unreadable", 2), "no such file"));
  CHECK(found(train, "no_text") == "3: blank good good");  // no line of it has columns
  CHECK(found(train, "surplus_blank_lines") == "1: good:3");
  CHECK(found(train, "too_few_columns") == "3: good:1 good:2 good:3");
  CHECK(train["pairs"] == 5);
  CHECK(train["kept"] == 2);
  CHECK(json["problems"].size() == 2);
}

TEST_CASE("it refuses what training refuses, and nothing else") {
  trained();
  const std::string good = "a b\nc d\ne f\n", nul("a\0b\nc\n", 6);
  struct Tried {
    std::string source, target;
    Words changes = {};
  };
  const std::vector<Tried> all = {
      {good, good},
      {good, "a b\nc d\ne f"},
      {good, good + "\n \n"},
      {good, good + "\ng\n"},
      {good, "a\nb\n"},
      {good, ""},
      {"", ""},
      {good, "\n\n \n"},
      {"a\n\nb\n", "a\nb\n\n"},
      {"a\n\n", "\nb\n"},
      {nul, "a\nb\n"},
      {"a\xC3\n", "a\n"},
      {"\xEF\xBB\xBF"
       "a\r\n",
       "b\r\n"},
      {std::string("\xFE\xFF\0a", 4), "a\n"},
      {"\"a\nb\n", "a\n\"b\n"},
      {good, good, {"data.max_length=1"}},
      {good, good, {"data.min_count=2"}},
      {good, good, {"data.min_count=2", "data.lowercase=true"}},
      {"a a\n", "b b\n", {"data.min_count=2"}},
      {good, good, {"data.test_source=missing"}},
      {good, good, {"data.valid_target=test.src", "data.valid_source=train.src"}},
  };
  int refused = 0;
  for (const Tried& tried : all) {
    put("tried.src", tried.source);
    put("tried.trg", tried.target);
    Words words{"--set",           "data.train_source=tried.src", "--set", "data.train_target=tried.trg", "--set",
                "training.steps=1"};
    for (const std::string& change : tried.changes) words = words + Words{"--set", change};
    const Outcome train = run_weft(Words{"train", "tiny.json", "--fresh", "--run", "tried", "--quiet"} + words);
    const Outcome checked = run_weft(Words{"data", "check", "tiny.json"} + words);
    CAPTURE(tried.source);
    CAPTURE(tried.target);
    CAPTURE(train.err);
    CAPTURE(checked.out);
    CHECK((train.code == 0 || train.code == 2));
    CHECK(checked.code == train.code);
    refused += train.code == 2;
  }
  CHECK(refused == 14);
}

TEST_CASE("lengths are nearest-rank percentiles; a text without faults passes") {
  workplace();
  std::string source, target;
  for (int i = 1; i <= 100; ++i) {
    source += sentence(i, "s") + "\n";
    target += sentence((i * 37) % 100 + 1, "t") + "\n";
  }
  put("len.src", source);
  put("len.trg", target);
  put("len.json", R"({"data": {"train_source": "len.src", "train_target": "len.trg", "valid_source": "len.src",
                      "valid_target": "len.trg", "tokenizer": "whitespace", "max_vocabulary": 53}})");
  const auto [code, json] = check({"len.json"});
  CHECK(code == 0);
  CHECK(json["usable"] == true);
  CHECK(json["problems"].empty());
  for (const char* side : {"source", "target"}) {
    CHECK(text_of(json, "train")[side]["lengths"] ==
          Json{{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"max", 100}});
    CHECK(text_of(json, "train")[side]["tokens"] == 5050);
    // 50 words of 100 are known, the most frequent: s0 in all, s49 in 51 of them.
    CHECK(text_of(json, "train")[side]["unknown_rate"].get<double>() == doctest::Approx(1275.0 / 5050));
  }
  CHECK(json["source_vocabulary"] == 53);
  CHECK(found(text_of(json, "valid"), "pair_in_training").starts_with("100: len.src:1 len.src:2 len.src:3"));
  CHECK(contains(run_weft({"data", "check", "len.json"}).out, "training would take this text\n"));

  const auto none = check({"len.json", "--set", "data.max_length=1", "--set", "data.train_source=len.trg", "--set",
                           "data.train_target=len.src"});
  CHECK(none.code == 2);
  CHECK(contains(none.json["problems"].dump(), "train: no pair is left of 100"));
}

TEST_CASE("characters a token are counted as the tokenizer sees the text") {
  workplace();
  put("chars.src",
      "ab  cd \xC3\xA9"
      "e\n");
  put("chars.trg", "abcdef\n");
  put("chars.json", R"({"data": {"train_source": "chars.src", "train_target": "chars.trg", "valid_source": "chars.src",
                      "valid_target": "chars.trg"}})");
  const Json json = check({"chars.json"}).json;
  CHECK(text_of(json, "train")["source"]["characters_per_token"].get<double>() == doctest::Approx(8.0 / 3));
  CHECK(text_of(json, "train")["target"]["characters_per_token"] == 6);
}

TEST_CASE("held-out pairs are reported as training would take them") {
  trained();
  const Words words{"tiny.json",         "--set", "data.valid_source=", "--set", "data.valid_target=",    "--set",
                    "data.test_source=", "--set", "data.test_target=",  "--set", "data.hold_out_valid=30"};
  const auto [code, json] = check(words);
  CHECK(code == 0);
  CHECK(text_of(json, "valid")["pairs"] == 30);
  CHECK(text_of(json, "train")["pairs"] == 370);
  for (const char* name : {"pair_in_training", "source_in_training", "target_in_training"}) {
    CHECK(found(text_of(json, "valid"), name).empty());
  }
  const auto many = check(words + Words{"--set", "data.hold_out_test=400"});
  CHECK(many.code == 2);
  CHECK(contains(many.json["problems"].dump(), "ask for 430 pairs"));
}

TEST_CASE("a pipe, which gives its text but once, is refused for that reason, as training does") {
  trained();
  REQUIRE(::mkfifo("text", 0600) == 0);
  const Descriptor pipe("text", O_RDWR);
  const std::string text = bytes_of("train.src");
  REQUIRE(::write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  for (const char* key : {"data.train_source=", "data.valid_target="}) {
    for (const std::string name : {"text", "/dev/null"}) {
      check_refused({"data", "check", "tiny.json", "--set", key + name},
                    {name + ": is not a regular file, but", "more than once; copy it to one"});
    }
  }
  check_refused({"train", "tiny.json", "--run", "piped", "--set", "data.train_source=text"},
                {"text: is not a regular file, but", "more than once; copy it to one"});
}

TEST_CASE("a toy task passes; wrong words are refused") {
  workplace();
  put("toy.json", R"({"data": {"task": "copy", "pairs": 200}})");
  const auto [code, json] = check({"toy.json"});
  CHECK(code == 0);
  CHECK(text_of(json, "train")["pairs"] == 200);
  CHECK(text_of(json, "train")["kept"] == 200);
  check_refused({"data", "chek", "toy.json"}, {"did you mean \"check\"?"});
  check_refused({"data", "check", "toy.json", "--output", "x"}, {"--output is not for data check"});
  check_refused({"data", "make", "copy", "--json"}, {"--json is not for data make"});
  check_refused({"data", "check", "toy.json", "--limit", "0"}, {"--limit"});
  check_refused({"data", "check", "none.json"}, {"none.json: there is no such file"});
  put("nothing.json", "{}");
  check_refused({"data", "check", "nothing.json"}, {"nothing to train on"});
}

TEST_CASE("a vocabulary that cannot be made hides nothing of the text") {
  trained();
  const auto [code, json] = check(
      {"tiny.json", "--set", "data.tokenizer=bpe", "--set", "data.max_vocabulary=5", "--set", "data.max_length=9"});
  CHECK(code == 2);
  CHECK(contains(json.dump(), "subwords need at least"));
  CHECK(text_of(json, "train")["findings"].size() > 0);  // the two sides are equal
  const auto [unread, others] = check({"tiny.json", "--set", "data.train_source=nosuch"});
  CHECK(unread == 2);
  for (const auto& [report, split, pairs] :
       {std::tuple(json, "train", 400), std::tuple(json, "valid", 20), std::tuple(others, "valid", 20)}) {
    CHECK(text_of(report, split)["pairs"] == pairs);
    for (const char* key : {"kept", "dropped", "source", "target"}) CHECK_FALSE(text_of(report, split).contains(key));
  }
  const Outcome text = run_weft({"data", "check", "tiny.json", "--set", "data.train_source=nosuch"});
  CHECK(
      contains(text.out, "valid: valid.src valid.trg\n  20 pairs; their tokens are not known without vocabularies\n"));
  CHECK_FALSE(contains(text.out, "kept"));
}

TEST_CASE("vocabularies that no checkpoint has room for are refused, as they are in training") {
  trained();
  const std::string most((4 << 20) - 1, '\x01');  // one token, each byte of which is written as six
  put("wide.src", "a" + most + "\nb" + most + "\n");
  put("wide.trg", "c" + most + "\nd" + most + "\n");
  const auto [code, json] = check({"tiny.json", "--set", "data.train_source=wide.src", "--set",
                                   "data.train_target=wide.trg", "--set", "data.tokenizer=whitespace"});
  CHECK(code == 2);
  REQUIRE(json["problems"].size() == 1);
  CHECK(contains(json["problems"][0], "the vocabularies take 101 MB of the 90 MB"));
  CHECK(text_of(json, "train")["kept"] == 2);
}

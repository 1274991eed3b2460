// weft score-text and the scores of weft evaluate through the real binary.
#include "cli.h"
#include "score_fixture.h"

using namespace weft::cli;
using weft::before_version;
using weft::bytes_of;
using weft::contains;
using weft::Json;
using weft::put;

namespace {

Words score(const Words& more) { return Words{"score-text"} + more; }

std::string scored(const Words& more, const std::string& input = "") {
  const Outcome outcome = run_weft(score(more), input);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  return outcome.out;
}

Json scored_json(const Words& more, const std::string& input = "") {
  return Json::parse(scored(more + Words{"--json"}, input));
}

/// The options that ask for a score of the fixture.
Words options_of(const Json& score) {
  Words words;
  if (score["lowercase"].get<bool>()) words.push_back("--lowercase");
  if (score["metric"] == "chrf") return words + Words{"--metric", score["word_order"] == 2 ? "chrf++" : "chrf"};
  words = words + Words{"--metric", "bleu", "--tokenizer", score["tokenize"], "--smoothing", score["smooth_method"]};
  if (!score["smooth_value"].is_null()) words = words + Words{"--smooth-value", score["smooth_value"].dump()};
  return words;
}

}  // namespace

TEST_CASE("score-text prints sacreBLEU's lines behind its signatures") {
  workplace();
  int tried = 0;
  for (const Json& corpus : weft::score_fixture()["corpora"]) {
    const Words hypotheses = corpus["hypotheses"];
    // A file has no line feed within a line.
    if (contains(corpus.dump(), "\\n") || ++tried > 5) continue;
    put("h.txt", joined(hypotheses));
    Words words{"--hypothesis", "h.txt"};
    for (std::size_t r = 0; r < corpus["references"].size(); ++r) {
      const std::string name = std::string("r").append(std::to_string(r)).append(".txt");
      put(name, joined(corpus["references"][r].get<Words>()));
      words = words + Words{"--reference", name};
    }
    for (const Json& score : corpus["scores"]) {
      if (score.value("word_order", 0) == 1) continue;  // chrF+ has no name here
      CAPTURE(score.dump());
      const std::string printed = score["printed"], name = printed.substr(0, printed.find(' '));
      const std::string line = scored(words + options_of(score));
      CHECK(line.starts_with(name + "|" + score["signature"].get<std::string>() + "|version:weft-"));
      CHECK(line.substr(line.find(" = ")) == printed.substr(printed.find(" = ")) + "\n");
    }
  }
  CHECK(tried > 5);
}

TEST_CASE("an input that cannot be read to its end has no score") {
  workplace();
  put("ref.txt", "one\ntwo\n");
  for (const auto& [file, reason] : {std::pair("/proc/self/mem", "Input/output error"), {"/", "Is a directory"}}) {
    const char *const path = file, *const why = reason;  // which Clang 14 lets a lambda capture
    CAPTURE(path);
    {
      const Descriptor in(path, O_RDONLY), out(workplace() / "out", O_WRONLY | O_CREAT | O_TRUNC),
          err(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
      CHECK(wait_for(start({"score-text", "--reference", "ref.txt"}, in, out, err)) == 2);
    }
    CHECK(bytes_of(workplace() / "out").empty());
    CHECK(contains(bytes_of(workplace() / "err"), std::string("standard input: cannot be read (") + why));
  }
}

TEST_CASE("blank lines are lines, and empty output is 0 and not NaN") {
  workplace();
  put("ref.txt", "A cat sat on it.\n\ncaf\u00e9 \u00e9t\u00e9\none\n");
  const Json perfect =
      scored_json({"--hypothesis", "ref.txt", "--reference", "ref.txt", "--metric", "bleu,chrf,chrf++"});
  REQUIRE(perfect.size() == 1);
  CHECK(perfect[0]["hypothesis"] == "ref.txt");
  CHECK(perfect[0]["lines"] == 4);
  REQUIRE(perfect[0]["scores"].size() == 3);
  for (const Json& one : perfect[0]["scores"]) CHECK(one["score"] == 100.0);
  CHECK(before_version(perfect[0]["scores"][0]["signature"]) == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
  const Json nothing = scored_json({"--reference", "ref.txt"}, "\n\n\n\n");
  CHECK(nothing[0]["hypothesis"] == "standard input");
  REQUIRE(nothing[0]["scores"].size() == 2);
  for (const Json& one : nothing[0]["scores"]) CHECK(one["score"] == 0.0);
  // Two forms of one letter are two letters to sacreBLEU; a last line needs no end, CR LF and a BOM are no text.
  CHECK(scored_json({"--reference", "ref.txt"},
                    "A cat sat on it.\n\ncafe\u0301 \u00e9t\u00e9\none\n")[0]["scores"][1]["score"] < 100);
  CHECK(scored({"--reference", "ref.txt"},
               "\xEF\xBB\xBF"
               "A cat sat on it.\r\n\r\ncaf\u00e9 \u00e9t\u00e9\r\none") ==
        scored({"--reference", "ref.txt", "--hypothesis", "ref.txt"}));
}

TEST_CASE("each sentence is scored on its own, in sacreBLEU's lines") {
  workplace();
  put("ref.txt", "the cat\n\na b c d e\n");
  const std::string input = "the cat\nx\na b c\n", bleu = "BLEU|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:";
  const Words lines = lines_of(scored({"--reference", "ref.txt", "--sentences", "--metric", "bleu"}, input));
  REQUIRE(lines.size() == 3);
  for (const std::string& line : lines) CHECK(line.starts_with(bleu));
  CHECK(contains(lines[0], " = 100.00 100.0/100.0/0.0/0.0 (BP = 1.000 "));
  CHECK(contains(lines[1], " = 0.00 0.0/"));
  CHECK(contains(lines[2], " = 51.34 100.0/100.0/100.0/0.0 (BP = 0.513 "));
  const Words both = lines_of(scored({"--reference", "ref.txt", "--sentences"}, input));
  REQUIRE(both.size() == 6);
  CHECK(both[4] == lines[2]);
  CHECK(both[5].starts_with("chrF2|"));
  const Json json = scored_json({"--reference", "ref.txt", "--sentences"}, input)[0]["scores"];
  CHECK(json[0]["sentences"][0] == 100);
  CHECK(json[1]["sentences"].size() == 3);
  check_refused(score({"--reference", "ref.txt", "--hypothesis", "ref.txt", "--hypothesis", "ref.txt", "--sentences"}),
                {"--sentences is for one --hypothesis"});
}

TEST_CASE("paired bootstrap compares outputs with the first and depends on the seed alone") {
  workplace();
  const weft::ParallelText text = weft::letters(60, 5, 5, 12);
  Words better = text.target, worse = text.target, other = text.target;
  for (std::size_t i = 0; i < worse.size(); ++i) {
    if (i % 2 == 0) worse[i] = "x " + worse[i].substr(2);
    if (i % 2 == 1) other[i] = "x " + other[i].substr(2);
    if (i % 10 == 0) better[i] = "x " + better[i].substr(2);
  }
  put("ref.txt", joined(text.target));
  put("worse.txt", joined(worse));
  put("other.txt", joined(other));
  put("better.txt", joined(better));
  const Words words{"--reference",  "ref.txt",   "--hypothesis", "worse.txt", "--hypothesis",       "better.txt",
                    "--hypothesis", "other.txt", "--hypothesis", "worse.txt", "--paired-bootstrap", "400"};
  const Json json = scored_json(words);
  REQUIRE(json.size() == 4);
  for (std::size_t m = 0; m < 2; ++m) {
    CHECK(json[0]["scores"][m]["p_value"].is_null());
    CHECK(json[1]["scores"][m]["p_value"] < 0.05);
    CHECK(json[2]["scores"][m]["p_value"] > 0.05);
    CHECK(json[3]["scores"][m]["p_value"] == 1.0);
    CHECK(json[1]["scores"][m]["score"] > json[0]["scores"][m]["score"]);
    CHECK(json[0]["scores"][m]["half_width"] > 0);
    CHECK(contains(json[0]["scores"][m]["signature"], "nrefs:1|bs:400|seed:12345|case:mixed|"));
  }
  CHECK(scored_json(words) == json);
  CHECK(scored_json(words + Words{"--threads", "1"}) == json);
  CHECK(scored_json(words + Words{"--seed", "12345"}) == json);
  CHECK(scored_json(words + Words{"--seed", "1"})[0]["scores"][0]["mean"] != json[0]["scores"][0]["mean"]);

  const Words lines = lines_of(scored(words));
  CHECK(lines[0] == "worse.txt");
  CHECK(lines[1].starts_with("BLEU|nrefs:1|bs:400|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-"));
  const auto row = [&](const std::string& metric, const std::string& name) {
    for (const std::string& line : lines) {
      if (line.starts_with(metric) && contains(line, " " + name)) return line;
    }
    return std::string();
  };
  CHECK(row("BLEU ", "better.txt").ends_with(" *"));
  CHECK(contains(row("chrF2 ", "worse.txt"), "baseline"));
  CHECK_FALSE(row("BLEU ", "other.txt").ends_with("*"));
}

TEST_CASE("score-text refuses what cannot be scored, in one line") {
  workplace();
  put("three.txt", "a\nb\nc\n");
  put("two.txt", "a\nb\n");
  put("none.txt", "");
  put("latin.txt", "a\nb\xE9\nc\n");
  const Words good{"--hypothesis", "three.txt", "--reference", "three.txt"};
  CHECK(run_weft(score(good)).code == 0);
  check_refused(score({"--hypothesis", "two.txt", "--reference", "three.txt"}), {"two.txt has 2", "three.txt has 3"});
  check_refused(score(good + Words{"--reference", "two.txt"}), {"two.txt has 2", "three.txt has 3"});
  check_refused(score({"--reference", "three.txt"}), {"standard input has 1", "three.txt has 3"}, "a\n");
  check_refused(score({"--hypothesis", "none.txt", "--reference", "none.txt"}), {"none.txt", "no lines"});
  check_refused(score({"--hypothesis", "latin.txt", "--reference", "three.txt"}), {"latin.txt:2:2", "not UTF-8"});
  check_refused(score({"--reference", "three.txt"}), {"standard input:2:2", "not UTF-8"}, "a\nb\xE9\nc\n");
  check_refused(score({"--hypothesis", "missing.txt", "--reference", "three.txt"}), {"missing.txt", "no such file"});
  check_refused(score({"--hypothesis", "three.txt"}), {"--reference is missing"});
  check_refused(score(good + Words{"--tokenizer", "14a"}), {"\"14a\"", "13a, none, char or zh"});
  check_refused(score(good + Words{"--metric", "ter"}), {"\"ter\"", "bleu, chrf or chrf++"});
  check_refused(score(good + Words{"--smoothing", "expp"}), {"\"expp\"", "did you mean \"exp\"?"});
  check_refused(score(good + Words{"--smooth-value", "0.1"}), {"smoothing exp has no smooth value"});
  check_refused(score(good + Words{"--smoothing", "floor", "--smooth-value", "-1"}), {"--smooth-value"});
  check_refused(score(good + Words{"--paired-bootstrap", "100"}), {"--hypothesis at least twice"});
  check_refused(score(good + Words{"--hypothesis", "three.txt", "--paired-bootstrap", "0"}), {"--paired-bootstrap"});
  check_refused(score(good + Words{"--seed", "3"}), {"--seed is for --paired-bootstrap"});
  check_refused(score(good + Words{"stray.txt"}), {"stray.txt", "--hypothesis"});
}

TEST_CASE("evaluate takes metrics, several references, lengths, and keeps the translations") {
  workplace();
  put("some.src", "a b c\n\nd e f a b c\n");
  const std::string output = run_weft({"translate", trained(), "--input", "some.src"}).out;
  const Words translated = lines_of(output);
  REQUIRE(translated.size() == 3);
  put("one.trg", joined({translated[0], "", "x y"}));
  put("two.trg", joined({"x y", "", translated[2]}) + "\n");  // a surplus blank line, as read_parallel allows
  const Words words{"evaluate", trained(), "--source", "some.src", "--reference", "one.trg", "--json"};
  const auto evaluated = [](const Words& all) {
    const Outcome outcome = run_weft(all);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out)[0];
  };
  const Json one = evaluated(words);
  CHECK(one["exact_match"] == 2.0 / 3);
  CHECK(one["bleu"] < 100);
  const Json both = evaluated(words + Words{"--reference", "two.trg", "--by-length", "--output", "kept.txt"});
  CHECK(bytes_of("kept.txt") == output);
  CHECK(both["exact_match"] == 1);
  CHECK(both["bleu"] == 100);
  CHECK(both["chrf"] == 100);
  CHECK(both["loss"] == one["loss"]);  // that of the first reference
  CHECK(before_version(both["signatures"]["bleu"]) == "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp");
  CHECK(before_version(both["signatures"]["chrf"]) == "nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no");
  REQUIRE(both["by_length"].size() == 3);
  CHECK(both["by_length"][0]["source_tokens"] == "0");
  CHECK(both["by_length"][1]["source_tokens"] == "1-5");
  CHECK(both["by_length"][2]["source_tokens"] == "6-10");
  for (const Json& bucket : both["by_length"]) CHECK(bucket["sentences"] == 1);
  CHECK(both["by_length"][0]["bleu"] == 0);  // no words, no match
  CHECK(both["by_length"][2]["chrf"] == 100);
  CHECK_FALSE(one.contains("by_length"));

  const Json other = evaluated(words + Words{"--metric", "chrf++", "--lowercase"});
  CHECK_FALSE(other.contains("bleu"));
  CHECK(before_version(other["signatures"]["chrf++"]) == "nrefs:1|case:lc|eff:yes|nc:6|nw:2|space:no");

  const Words table = lines_of(run_weft({"evaluate", trained(), "--by-length", "--tokenizer", "char"}).out);
  REQUIRE(table.size() >= 8);
  CHECK(contains(table[0], "BLEU  chrF2"));
  CHECK(before_version(table[2]) == "BLEU: nrefs:1|case:mixed|eff:no|tok:char|smooth:exp");
  CHECK(before_version(table[3]) == "chrF2: nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no");
  CHECK(table[5] == "tiny/best.safetensors by length");
  CHECK(contains(table[6], "source tokens  sentences  exact match"));
  CHECK(contains(table[7], "1-5"));

  check_refused({"evaluate", trained(), "tiny/last.safetensors", "--output", "no.txt"}, {"one checkpoint, found 2"});
  check_refused({"evaluate", trained(), "--output", "nowhere/no.txt"}, {"no folder nowhere"});
  check_refused({"evaluate", trained(), "--tokenizer", "14a"}, {"\"14a\"", "13a, none, char or zh"});
}

TEST_CASE("the checkpoint's configuration says how validation and evaluation cut words") {
  trained();
  const auto set = [](const std::string& run, const Words& more) {
    return Words{"train", "tiny.json",        "--run", run,
                 "--set", "training.steps=4", "--set", "training.validate_every=2"} +
           more;
  };
  CHECK(run_weft(set("plain", {})).code == 0);
  const Outcome outcome =
      run_weft(set("char", {"--set", "decoding.bleu_tokenizer=char", "--set", "training.best_metric=chrf"}));
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, ", chrf "));  // the last line names the metric
  const Json history = Json::parse(run_weft({"inspect", "char/best.safetensors", "--json"}).out)["validations"];
  REQUIRE(history.size() >= 1);
  CHECK(history[0]["chrf"].is_number());
  const Words lines = lines_of(run_weft({"evaluate", "plain/last.safetensors", "char/last.safetensors"}).out);
  REQUIRE(lines.size() == 6);
  CHECK(lines[3].starts_with("BLEU of plain/last.safetensors: nrefs:1|case:mixed|eff:no|tok:13a|"));
  CHECK(lines[4].starts_with("BLEU of char/last.safetensors: nrefs:1|case:mixed|eff:no|tok:char|"));
  CHECK(lines[5].starts_with("chrF2: nrefs:1|"));
  check_refused(set("bad", {"--set", "decoding.bleu_tokenizer=14a"}), {"decoding.bleu_tokenizer"});
}

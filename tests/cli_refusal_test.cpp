// The command line through the real binary: what it refuses, in one line that says what is wrong and how to mend it.
#include "cli.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;

namespace {

const Words kVerbs{"train", "evaluate", "translate", "score", "score-text", "average", "inspect", "config", "data"};

/// The words that train with the trained model's configuration and changes to it, in a folder that is not
/// there yet.
Words train_with(const Words& changes) {
  trained();
  Words words{"train", "tiny.json", "--run", "refused/run"};
  for (const std::string& change : changes) words = words + Words{"--set", change};
  return words;
}
}  // namespace

TEST_CASE("wrong words are refused in one line that says what is right") {
  trained();
  check_refused({"trian"}, {"\"trian\" is not a verb", "did you mean \"train\"?", "weft --help"});
  check_refused({""}, {"\"\" is not a verb"});
  for (const std::string& verb : kVerbs)
    check_refused({verb, "--colour", "red"}, {"colour", "see weft " + verb + " --help"});
  check_refused({"train"}, {"expected one CONFIG, found 0"});
  check_refused({"train", "a.json", "b.json"}, {"expected one CONFIG, found 2"});
  check_refused({"translate"}, {"CHECKPOINT", "found 0"});
  check_refused({"translate", "a", "b"}, {"a: ", "No such file"});
  check_refused({"inspect", "a", "b"}, {"expected one CHECKPOINT, found 2"});
  check_refused({"evaluate"}, {"CHECKPOINT", "found 0"});
  check_refused({"translate", trained(), "--beam"}, {"beam"});
  for (const char* verb : {"translate", "evaluate"}) {
    for (const char* beam : {"0", "-1", "abc", "1.5", "1000000", "99999999999999999999"}) {
      check_refused({verb, trained(), std::string("--beam=") + beam},
                    {"--beam", beam, "a whole number from 1 to 1024"});
    }
  }
  check_refused({"translate", trained(), "--beam", "-1"}, {"--beam", "-1"});
  check_refused({"translate", trained(), "--beam", "3", "--n-best", "4"},
                {"--n-best 4", "3 hypotheses", "raise --beam"});
  for (const char* penalty : {"-1", "nan", "inf", "1e300", "much"}) {
    check_refused({"translate", trained(), "--length-penalty", penalty}, {"--length-penalty", penalty, "from 0 to 10"});
  }
  for (const char* option : {"min-length", "max-length", "no-repeat-ngram"}) {
    for (const char* value : {"-1", "two", "1.5"}) {
      check_refused({"translate", trained(), std::string("--") + option + "=" + value},
                    {option, value, "whole number"});
    }
  }
  check_refused({"translate", trained(), "--min-length", "4", "--max-length", "3"},
                {"--min-length 4", "--max-length 3"});
  for (const char* option : {"temperature", "top-p"}) {
    for (const char* value : {"0", "-1", "nan", "1001", "warm"}) {
      check_refused({"translate", trained(), "--sample", std::string("--") + option + "=" + value}, {option, value});
    }
  }
  check_refused({"translate", trained(), "--sample", "--top-k=-3"}, {"--top-k", "-3"});
  check_refused({"translate", trained(), "--sample", "--seed", "x"}, {"--seed", "x"});
  for (const char* option : {"temperature", "top-k", "top-p", "seed"}) {
    check_refused({"translate", trained(), std::string("--") + option + "=1"}, {option, "goes with --sample"});
  }
  check_refused({"translate", trained(), "--sample=false"}, {"--sample takes no value, found \"false\""});
  check_refused({"translate", trained(), "--input", "a", "--input", "b"}, {"--input is given 2 times"});
  check_refused({"translate", trained(), "--input="}, {"--input is empty"});
  check_refused({"translate", trained(), "--alignment="}, {"--alignment is empty"});
  check_refused({"translate", trained(), "--sample", "--beam", "4"}, {"--beam", "--sample", "one of the two"});
  for (const char* option : {"output", "alignment", "soft-alignment", "attention"}) {
    check_refused({"translate", trained(), std::string("--") + option, "."}, {option, "is a folder"});
    check_refused({"translate", trained(), std::string("--") + option, "missing/x"},
                  {"missing/x", "no folder missing"});
  }
  check_refused({"translate", trained(), "--threads", "1025"}, {"--threads", "1024"});
  check_refused({"translate", trained(), "--input", "missing.txt"}, {"missing.txt", "No such file"});
  check_refused({"translate", trained(), "--input", "."}, {".: ", "irectory"});
  check_refused({"translate", trained(), "--output", "missing/out.txt"}, {"missing/out.txt", "no folder missing"});
  check_refused({"translate", trained(), "--attention", "missing/a.svg"}, {"missing/a.svg", "no folder missing"});
  check_refused({"evaluate", trained(), "--source", "test.src"}, {"--source and --reference go together"});
  check_refused({"evaluate", trained(), "--source", "a", "--reference", "b", "--split", "test"}, {"not both"});
  check_refused({"evaluate", trained(), "--split", "tset"}, {"\"tset\"", "train, valid, test"});
  check_refused({"config", "sohw", "a.json"}, {"show FILE | docs", "did you mean \"show\"?"});
  check_refused({"config", "docs", "--set", "model.heads=2"}, {"--set is for config show"});
  check_refused({"config", "show", "tiny.json", "--set", "optimizer.learning_rate=1e400"},
                {"learning_rate is 1e400 (out of range); must be a number"});
  check_refused({"translate", "--positional", trained()}, {"'positional' does not exist"});
  check_refused({"check", "layer", "default", "--slot", "norm"}, {"not a layer that the slot norm has; it has norm ("});
  check_refused({"data", "make", "fr-en"}, {"--output is missing"});
  check_refused({"data", "make", "fr-eng", "--output", "d"}, {"fr-eng", "fr-en, copy, reverse, sort"});
  for (const char* pairs : {"0", "-5", "many"}) {
    check_refused({"data", "make", "copy", "--output", "d", "--pairs", pairs}, {"--pairs", pairs});
  }
  check_refused({"data", "make", "copy", "--output", "tiny.json/d", "--pairs", "5"}, {"tiny.json/d"});
}

TEST_CASE("what is missing or empty is named") {
  trained();
  check_refused({"config", "show"}, {"config: expected show FILE, found show; see"});
  check_refused({"config", "show", "a", "b"}, {"expected show FILE, found show a b; see"});
  check_refused({"config"}, {"expected show FILE | docs, found nothing"});
  check_refused({"data", "make"}, {"expected make TASK, found make; see"});
  check_refused({"data", "check"}, {"expected check CONFIG, found check; see"});
  check_refused({"bench", "step"}, {"expected step CONFIG, found step; see"});
  check_refused({"train", ""}, {"train: argument 1 of 1 is empty; expected CONFIG"});
  check_refused({"average", "out", ""}, {"argument 2 of 2 is empty"});
  check_refused({"train", "tiny.json", "--from", ""}, {"train: --from is empty"});
  check_refused({"average", "--run", "", "--last", "1", "--output", "x.safetensors"}, {"average: --run is empty"});
  check_refused({"translate", trained(), "--beam="}, {"--beam is empty"});
  CHECK(contains(run_weft({"plot", "tiny", "--title", ""}).out, "</svg>"));  // a text may be
  CHECK(run_weft({"config", "--help"}).code == 0);
}

TEST_CASE("a message is not as long as what it tells of") {
  trained();
  const std::string name = "begin/" + std::string(3000, 'x');
  const Outcome outcome = run_weft({"inspect", name + "\u00e9/end"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.size() < 2500);
  CHECK(outcome.err.starts_with("weft: begin/xxx"));
  CHECK(contains(outcome.err, "xx [... 1,"));
  CHECK(contains(outcome.err, " bytes ...] xx"));
  CHECK(contains(outcome.err, "\u00e9/end: "));
  // Each line of a configuration's problems stays.
  Words words{"config", "show", "tiny.json"};
  for (int i = 0; i < 12; ++i)
    words = words + Words{"--set", "nothing" + std::to_string(i) + std::string(300, 'y') + "=1"};
  const Outcome problems = run_weft(words);
  CHECK(lines_of(problems.err).size() == 12);
  CHECK_FALSE(contains(problems.err, "[..."));
}

TEST_CASE("a configuration that cannot be used is refused, one line a problem") {
  check_refused({"train", "missing.json"}, {"missing.json", "no such file"});
  check_refused({"train", "."}, {"is a directory"});
  check_refused(train_with({"optimizer.learing_rate=1"}),
                {"optimizer.learing_rate", "did you mean optimizer.learning_rate?"});
  check_refused(train_with({"model.heads=two"}), {"model.heads is \"two\"", "a whole number"});
  check_refused(train_with({"model.heads=0"}), {"model.heads is 0", "at least 1"});
  check_refused(train_with({"model.heads=3"}), {"model.d_model (32)", "model.heads (3)"});
  check_refused(train_with({"model.feed_forward=gated"}), {"model.feed_forward: \"gated\"", "default"});
  check_refused(train_with({"model.positions=learnt"}),
                {"\"learnt\"", "learned, sinusoidal", "did you mean \"learned\"?"});
  put("empty.json", "{}");
  check_refused({"train", "empty.json"}, {"nothing to train on", "data.train_source", "data.task"});
  put("cut.json", "{\"data\": {\"task\": \"copy\"");
  check_refused({"train", "cut.json"}, {"cut.json:1:"});

  const auto before = everything();
  const Outcome several = run_weft(train_with({"model.heads=0", "training.steps=-4", "modle.d_model=3"}));
  CHECK(several.code == 2);
  CHECK(several.out.empty());
  const Words lines = lines_of(several.err);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("weft: "));
  CHECK(contains(several.err, "model.heads is 0"));
  CHECK(contains(several.err, "training.steps is -4"));
  CHECK(contains(several.err, "modle.d_model is not a known key"));
  CHECK(everything() == before);
}

TEST_CASE("text that cannot be used is refused before anything is written") {
  trained();
  put("short.trg", "a b\nc d\n");
  check_refused(train_with({"data.train_target=short.trg"}), {"train.src has 400 lines", "short.trg has 2"});
  check_refused(train_with({"data.valid_target=short.trg"}), {"valid.src has 20 lines", "short.trg has 2"});
  check_refused(train_with({"data.test_source=short.trg", "data.test_target=missing.trg"}),
                {"missing.trg", "no such file"});
  check_refused(train_with({"data.train_source=missing.src"}), {"missing.src", "no such file"});
  check_refused(train_with({"data.train_source=."}), {"directory"});
  put("nothing", "");
  check_refused(train_with({"data.train_source=nothing", "data.train_target=nothing"}), {"nothing: has no text"});
  check_refused(train_with({"data.valid_source=nothing", "data.valid_target=nothing"}), {"nothing: has no text"});
  put("blank", "\n \n\n");
  check_refused(train_with({"data.train_source=blank", "data.train_target=blank"}), {"blank: has no text"});
  put("bad", "a b\nc \xE9t\xE9\n");
  check_refused(train_with({"data.train_source=bad", "data.train_target=bad"}),
                {"bad:2:3: not UTF-8 (byte 0xE9)", "iconv"});
  for (const std::string form :
       {"\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {  // cut, overlong, surrogate, above
    put("bad", "a\n" + form + " b\n");
    check_refused(train_with({"data.valid_source=bad", "data.valid_target=bad"}), {"bad:2:1: not UTF-8"});
  }
  put("nul", std::string("a\0b\n", 4));
  check_refused(train_with({"data.train_source=nul", "data.train_target=nul"}), {"nul:1:2: NUL byte"});
  put("utf16", std::string("\xFF\xFE"
                           "a\0\n\0",
                           6));
  check_refused(train_with({"data.train_source=utf16", "data.train_target=utf16"}), {"utf16: this is UTF-16"});
  put("long", "a b c d e f a b c d e f\na b c d e f a b c d e f\n");
  check_refused(train_with({"data.train_source=long", "data.train_target=long"}),
                {"the training text: no pair is left of 2", "2 with more than 9 tokens",
                 "raise what sets that: model.max_length, or"});
  check_refused({"train", "tiny.json", "--run", "tiny.json/run"}, {"tiny.json/run", "--run"});
  check_refused({"train", "tiny.json", "--run", "tiny.json"}, {"tiny.json", "--run"});
  if (::access("/proc/version", W_OK) != 0) {  // where even root may not write
    check_refused({"train", "tiny.json", "--run", "/proc/weft"}, {"/proc/weft", "--run"});
  }
  CHECK_FALSE(fs::exists("refused"));
  CHECK_FALSE(fs::exists("runs"));
}

TEST_CASE("a checkpoint that is missing, a folder, cut, altered or something else is refused by every verb") {
  const std::string good = bytes_of(trained());
  put("cut.safetensors", good.substr(0, good.size() / 2));
  std::string altered = good;
  altered[good.size() * 3 / 4] = static_cast<char>(altered[good.size() * 3 / 4] ^ 1);
  put("altered.safetensors", altered);
  put("text.safetensors", "It was a bright cold day in April, and the clocks were striking thirteen.\n");
  for (const char* verb : {"evaluate", "translate", "inspect"}) {
    check_refused({verb, "missing.safetensors"}, {"missing.safetensors", "No such file"});
    check_refused({verb, "."}, {"irectory"});
    check_refused({verb, "cut.safetensors"}, {"cut.safetensors: is cut"});
    check_refused({verb, "altered.safetensors"}, {"altered.safetensors: is damaged (checksum"});
    check_refused({verb, "text.safetensors"}, {"text.safetensors: is not a safetensors file"});
  }
  for (std::size_t k = 0; k < 30; ++k) {
    const std::size_t at = good.size() * k / 30;
    put("cut.safetensors", good.substr(0, at));
    CHECK(run_weft({"inspect", "cut.safetensors"}).code == 2);
    altered = good;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    put("altered.safetensors", altered);
    CHECK(run_weft({"inspect", "altered.safetensors"}).code == 2);
  }
  fs::create_directory("damaged");
  put("damaged/last.safetensors", altered);
  const Words words{"train", "tiny.json", "--run", "damaged"};
  check_refused(words, {"damaged/last.safetensors: is damaged", "; without it, begin the run anew with --fresh\n"});
  fs::copy_file(trained(), "damaged/best.safetensors");
  check_refused(words, {"with --fresh, or begin another with --from damaged/best.safetensors\n"});
  CHECK(bytes_of("damaged/last.safetensors") == altered);
}

TEST_CASE("a link that leads to nothing is called that, and not a missing file") {
  trained();
  fs::create_directory("linked");
  fs::create_symlink("gone", "linked/last.safetensors");
  const std::string lost = "linked/last.safetensors: ", why = "is a link to gone, which leads to nothing";
  check_refused({"train", "tiny.json", "--run", "linked"}, {lost + why});
  for (const char* verb : {"evaluate", "translate", "inspect"}) {
    check_refused({verb, "linked/last.safetensors"}, {lost, why});
  }
  fs::create_symlink("gone", "lost");
  const std::string lost_file = "lost: is a link to gone, which leads to nothing", best = trained();
  for (const char* key : {"data.train_source", "data.valid_source"}) {
    check_refused({"train", "tiny.json", "--run", "new", "--set", std::string(key) + "=lost"}, {lost_file});
  }
  check_refused({"train", "lost"}, {lost_file});
  check_refused({"train", "tiny.json", "--run", "lost"}, {lost_file});
  check_refused({"score", best, "--source", "lost", "--target", "test.trg"}, {lost_file});
  check_refused({"evaluate", best, "--source", "lost", "--reference", "test.trg"}, {lost_file});
  check_refused({"score-text", "--hypothesis", "lost", "--reference", "test.trg"}, {lost_file});
  check_refused({"plot", "lost"}, {lost_file});
  check_refused({"data", "make", "copy", "--pairs", "10", "--output", "lost"}, {lost_file});
}

TEST_CASE("a message is one line, whatever the names hold") {
  trained();
  check_refused({"inspect", "a\nb"}, {"weft: a\\nb: cannot be read"});
  check_refused({"train", "a\nb"}, {"weft: a\\nb: "});
  check_refused({"a\nb"}, {"\"a\\nb\" is not a verb"});
  check_refused({"translate", trained(), "--output", "a\nb/\x1B[2J"}, {"--output a\\nb/\\x1B[2J: there is no folder"});
  fs::create_symlink("no\nweft: all is well", "forged");
  check_refused({"config", "show", "forged"}, {"forged: is a link to no\\nweft: all is well, which leads"});
  put("a\nb.json", R"({"data": {"task": "no"}, "model": {"heads": 0}})");  // several problems
  check_refused({"train", "a\nb.json"}, {"a\\nb.json:1: data.task", "\\na\\nb.json:1: model.heads"});
  put("a\nb.txt", "\xFF\n");
  const Outcome outcome = run_weft({"translate", trained(), "--input", "a\nb.txt"});
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK(outcome.err.starts_with("weft: warning: a\\nb.txt: lines 1 to 1 have 1 byte that"));
}

TEST_CASE("what is printed sends no control characters that names or texts hold") {
  const std::string best = trained(), odd = "r\x1b[31m\nx", shown = "r\\x1B[31m\\nx";
  const auto check_shown = [&](const Words& words, int code = 0) {
    const Outcome outcome = run_weft(words);
    CAPTURE(outcome.out);
    CHECK(outcome.code == code);
    CHECK_FALSE(contains(outcome.out, "\x1b"));
    CHECK(contains(outcome.out, shown));
  };
  check_shown({"average", odd + ".safetensors", best, best});
  check_shown({"evaluate", odd + ".safetensors", best, "--by-length"});
  check_shown({"data", "make", "copy", "--pairs", "10", "--output", odd});
  put("odd.src", "a \x1b[31m b\n");
  put("odd.trg", "a b\n");
  const Outcome report = run_weft(
      {"data", "check", "tiny.json", "--set", "data.valid_source=odd.src", "--set", "data.valid_target=odd.trg"});
  CHECK(contains(report.out, "odd.src:1"));
  CHECK_FALSE(contains(report.out, "\x1b"));
}

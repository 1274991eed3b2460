// The command line through the real binary: help, where output goes, and the verbs that only look.
#include "cli.h"

#include <nlohmann/json.hpp>

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

const Words kVerbs{"train", "evaluate", "translate", "score", "score-text", "average", "inspect", "config", "data"};

Words names(const Json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

}  // namespace

TEST_CASE("help of everything, with examples, and the version") {
  for (const Words& words : {Words{"--help"}, {"help"}, {"-h"}}) {
    const Outcome general = run_weft(words);
    CHECK(general.code == 0);
    CHECK(general.err.empty());
    CHECK(contains(general.out, "usage: weft VERB"));
    CHECK(contains(general.out, "examples:\n  weft train "));
    for (const std::string& verb : kVerbs) CHECK(contains(general.out, "\n  " + verb + " "));
  }
  for (const std::string& verb : kVerbs) {
    CAPTURE(verb);
    const Outcome help = run_weft({verb, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(contains(help.out, "usage: weft " + verb));
    CHECK(contains(help.out, "--help"));
    CHECK(contains(help.out, "examples:\n  "));
    CHECK(contains(help.out.substr(help.out.find("examples:")), "weft " + verb));
  }
  const Outcome version = run_weft({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("weft "));
  CHECK(std::count(version.out.begin(), version.out.end(), '.') == 2);
  const Outcome nothing = run_weft({});
  CHECK(nothing.code == 2);
  CHECK(contains(nothing.out, "usage: weft VERB"));
}

TEST_CASE("a closed or full standard output ends every verb with a message and a failure") {
  for (const Words& words : {Words{"--help"}, {"inspect", trained()}, {"evaluate", trained()}, {"config", "docs"}}) {
    const Outcome outcome = run_weft(words, "", {}, "/dev/full");
    CAPTURE(words);
    CHECK(outcome.code == 1);
    CHECK(outcome.err.starts_with("weft: standard output: cannot write"));
  }
}

TEST_CASE(
    "config show is complete, reads back as itself, and follows overrides; docs are those of the "
    "repository") {
  trained();
  const Outcome shown = run_weft({"config", "show", "tiny.json"});
  CHECK(shown.code == 0);
  CHECK(Json::parse(shown.out)["model"]["d_model"] == 32);
  CHECK(Json::parse(shown.out)["decoding"]["beam"] == 4);
  put("shown.json", shown.out);
  CHECK(run_weft({"config", "show", "shown.json"}).out == shown.out);
  CHECK(bytes_of("tiny/config.json") == shown.out);
  const Outcome changed =
      run_weft({"config", "show", "tiny.json", "--set", "model.d_model=8", "--set", "decoding.beam=2"});
  CHECK(Json::parse(changed.out)["model"]["d_model"] == 8);
  CHECK(Json::parse(changed.out)["decoding"]["beam"] == 2);
  check_refused({"config", "show", "tiny.json", "--set", "model.norm=none"}, {"model.norm: \"none\"", "layer_norm"});
  CHECK(run_weft({"config", "docs"}).out == bytes_of(WEFT_SOURCE_DIR "/docs/config.md"));
}

TEST_CASE("data make writes the same bytes twice") {
  workplace();
  const Words words{"data", "make", "reverse", "--pairs", "40", "--seed", "7", "--output"};
  const Outcome outcome = run_weft(words + Words{"made/a"});
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "made/a/train.src, .trg: 40 pairs\n"));
  CHECK(run_weft(words + Words{"made/b"}).code == 0);
  for (const std::string split : {"train", "valid", "test", "test_long"}) {
    for (const std::string side : {".src", ".trg"}) {
      CHECK_FALSE(bytes_of("made/a/" + split + side).empty());
      CHECK(bytes_of("made/a/" + split + side) == bytes_of("made/b/" + split + side));
    }
  }
  CHECK(lines_of(bytes_of("made/a/train.src")).size() == 40);
  CHECK(run_weft({"data", "make", "reverse", "--pairs", "40", "--seed", "8", "--output", "made/c"}).code == 0);
  CHECK(bytes_of("made/a/train.src") != bytes_of("made/c/train.src"));
}

TEST_CASE("texts, averages and exports replace nothing that is protected, and nothing of a run") {
  const std::string checkpoint = trained();
  for (const char* folder : {"mine", "taskrun/data"}) fs::create_directories(folder);
  put("mine/train.src", "my text\n");
  const auto protect = [](const std::string& path) {
    fs::permissions(path, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  };
  protect("mine/train.src");
  check_refused({"data", "make", "copy", "--output", "mine"}, {"mine/train.src", "protected", "chmod"});
  CHECK(bytes_of("mine/train.src") == "my text\n");
  CHECK_FALSE(fs::exists("mine/train.trg"));
  put("taskrun/log.jsonl", "");
  put("taskrun/data/test.trg", "a\n");
  put("taskrun/data/test.src", "a\n");
  fs::create_directory_symlink("taskrun/data", "text");
  for (const char* file : {"taskrun/data/test.trg", "text/test.src"}) {
    check_refused({"evaluate", checkpoint, "--output", file}, {file, "a run's own file"});
  }
  fs::create_directories("linked/far");
  fs::create_symlink("far/train.src", "linked/train.src");
  CHECK(run_weft({"data", "make", "copy", "--pairs", "10", "--output", "linked"}).code == 0);
  CHECK(fs::exists("linked/far/train.src"));
  check_refused({"data", "make", "copy", "--output", "taskrun/data/"}, {"taskrun/data", "text of a run"});
  fs::copy_file(checkpoint, "protected.safetensors");
  protect("protected.safetensors");
  const std::string run = fs::path(checkpoint).parent_path().string();
  check_refused({"average", "--run", run, "--last", "1", "--output", "protected.safetensors"},
                {"protected.safetensors"});
  fs::create_directories("export");
  fs::create_symlink(fs::absolute(checkpoint), "export/model.safetensors");
  check_refused({"bench", "step", "tiny.json", "--export", "export"},
                {"export/model.safetensors", "checkpoint of a run"});
  fs::remove("export/model.safetensors");
  REQUIRE(run_weft({"average", "export/model.safetensors", checkpoint, checkpoint}).code == 0);
  check_refused({"bench", "step", "tiny.json", "--export", "export"}, {"export/model.safetensors: is no export"});
  fs::remove("export/model.safetensors");
  for (int again = 0; again < 2; ++again) {
    CHECK(run_weft({"bench", "step", "tiny.json", "--lengths", "uniform:5", "--export", "export"}).code == 0);
  }
  protect("export/model.safetensors");
  check_refused({"bench", "step", "tiny.json", "--export", "export"}, {"export/model.safetensors", "protected"});
}

TEST_CASE("no verb prints to what it reads, as the shell's >> would have it") {
  const std::string checkpoint = trained();
  fs::copy_file(checkpoint, "read.safetensors", fs::copy_options::overwrite_existing);
  for (const Words& words :
       {Words{"data", "check", "tiny.json", ">>train.src"}, Words{"data", "check", "tiny.json", ">>tiny.json"},
        Words{"data", "split", "tiny.json", "--output", "apart", ">>valid.src"},
        Words{"bench", "products", "tiny.json", ">>tiny.json"},
        Words{"train", "tiny.json", "--run", "apart", ">>train.src"},
        Words{"inspect", "read.safetensors", ">>read.safetensors"}, Words{"config", "show", "tiny.json", ">>tiny.json"},
        Words{"average", "new.safetensors", "read.safetensors", ">>read.safetensors"},
        Words{"score-text", "--hypothesis", "test.src", "--reference", "test.trg", ">>test.trg"},
        Words{"score-text", "--reference", "test.trg", "<test.src", ">>test.src"}}) {
    CAPTURE(words);
    const std::string file = words.back().substr(2), before = bytes_of(file);
    std::string line = std::string("\"") + WEFT_BINARY + "\"";
    for (const std::string& word : words) line += " " + word;
    const int status = std::system((line + " 2>printed.err").c_str());
    CHECK(WEXITSTATUS(status) == 2);
    CHECK(contains(bytes_of("printed.err"), "standard output: goes to "));
    CHECK(bytes_of(file) == before);
  }
  fs::create_directories("stopped");
  for (const char* file : {"stopped/log.jsonl", "stopped/last.safetensors"}) {  // as files of a run
    put(file, "");
    CHECK(WEXITSTATUS(std::system(
              (std::string("\"") + WEFT_BINARY + "\" train tiny.json --run stopped >>" + file + " 2>printed.err")
                  .c_str())) == 2);
    CHECK(contains(bytes_of("printed.err"), "standard output: goes to "));
  }
  CHECK(std::system((std::string("\"") + WEFT_BINARY + "\" config docs >docs").c_str()) == 0);  // a use, and no file
  CHECK_FALSE(fs::exists("new.safetensors"));
  CHECK_FALSE(fs::exists("apart"));
  check_refused({"data", "split", "valid.src", "--output", "."}, {"valid.src"});
  fs::create_directories("apart/test.trg");
  CHECK(run_weft({"data", "split", "tiny.json", "--output", "apart"}).code != 0);
  CHECK_FALSE(fs::exists("apart/valid.src"));
}

TEST_CASE("no verb writes to a run's own file through a descriptor, on standard error either") {
  const std::string checkpoint = trained();
  fs::create_directories("other");
  fs::copy_file(checkpoint, "other/last.safetensors");
  for (const char* file : {"other/log.jsonl", "other/config.json"}) put(file, "{}\n");
  put("read.txt", "a b\n");
  const auto refused = [](const std::string& command, const std::string& file, const std::string& message) {
    CAPTURE(command);
    const std::string before = bytes_of(file);
    const std::string line = std::string("{ \"") + WEFT_BINARY + "\" " + command + "; } >said.out 2>said.err";
    CHECK(WEXITSTATUS(std::system(line.c_str())) == 2);
    CHECK(contains(bytes_of("said.out") + bytes_of("said.err"), message));
    CHECK(bytes_of(file) == before);
  };
  const std::string last = "other/last.safetensors", log = "other/log.jsonl", own = "goes to a run's own file, ";
  for (const std::string& command :
       {std::string("config docs"), std::string("data make copy --output new"), std::string("check layer default"),
        std::string("--help"), std::string("no verb"), std::string("inspect ") + checkpoint,
        std::string("score-text --hypothesis read.txt --reference read.txt"),
        "average new.safetensors " + checkpoint + " " + checkpoint}) {
    refused(command + " >>" + last, last, "standard output: " + own);
    refused(command + " 2>>" + log, log, "standard error: " + own);
  }
  refused("config docs >>" + log + " 2>>" + last, last, "");  // there is nowhere to say it
  refused("plot tiny --output /dev/fd/7 7>>" + log, log, "--output /dev/fd/7: " + own);
  const std::string evaluate = "evaluate " + checkpoint, translate = "translate " + checkpoint,
                    read = "goes to the file";
  for (const std::string& file : {checkpoint, std::string("train.src"), std::string("read.txt")}) {
    const std::string given = " --source read.txt --reference read.txt --output new.txt >>";
    refused(evaluate + given + file, file, "standard output: " + (file == checkpoint ? own : read));
  }
  refused(translate + " <read.txt 2>>read.txt", "read.txt", "standard error: " + read);
  refused(translate + " <read.txt 2>>" + checkpoint, checkpoint, "standard error: " + own);
  for (const std::string& command : {"inspect " + checkpoint, "average new.safetensors " + checkpoint}) {
    refused(command + " >>train.src", "train.src", "standard output: " + read);
  }
  CHECK_FALSE(fs::exists("new"));
  CHECK_FALSE(fs::exists("new.txt"));
  CHECK_FALSE(fs::exists("new.safetensors"));
}

TEST_CASE("what a program prints as commands can be given to a shell, whatever its name is") {
  trained();
  fs::create_symlink(WEFT_BINARY, "my weft");
  const std::string shorter = " --set training.steps=1 --set training.validate_every=1";
  REQUIRE(std::system(("./'my weft' train tiny.json --run named" + shorter + " >said.out").c_str()) == 0);
  CHECK(contains(bytes_of("said.out"), "next: 'my weft' evaluate named/best.safetensors, or: 'my weft' translate"));
}

TEST_CASE("inspect shows configuration, parameters, vocabulary and history") {
  const Outcome text = run_weft({"inspect", trained()});
  CHECK(text.code == 0);
  for (const char* part : {"\"d_model\": 32", "encoder.layers.0.feed_forward.inner.weight", "[64, 32]",
                           "vocabulary: 9 source, 9 target tokens", "token accuracy", "best"}) {
    CHECK(contains(text.out, part));
  }
  const Outcome outcome = run_weft({"inspect", "tiny/last.safetensors", "--json"});
  CHECK(outcome.code == 0);
  const Json json = Json::parse(outcome.out);
  CHECK(json["config"] == Json::parse(bytes_of("tiny/config.json")));
  CHECK(json["step"] == 300);
  CHECK(json["source_vocabulary"] == 9);
  CHECK(json["validations"].size() == 3);
  weft::Index count = 0;
  for (const Json& parameter : json["parameters"]) {
    weft::Index size = 1;
    for (const Json& length : parameter["shape"]) size *= length.get<weft::Index>();
    count += size;
  }
  CHECK(json["parameter_count"] == count);
}

TEST_CASE("evaluate scores checkpoints on splits and on files") {
  const Outcome table = run_weft({"evaluate", trained(), "tiny/last.safetensors"});
  CHECK(table.code == 0);
  const Words lines = lines_of(table.out);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("checkpoint"));
  CHECK(lines[1].starts_with("tiny/best.safetensors"));
  CHECK(lines[3].starts_with("BLEU: nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-"));
  CHECK(lines[4].starts_with("chrF2: nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-"));

  const auto scores = [](const Words& words) {
    const Outcome outcome = run_weft(Words{"evaluate", "--json"} + words);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    const Json json = Json::parse(outcome.out);
    for (const Json& row : json) {
      CHECK(names(row) == Words{"checkpoint", "sentences", "loss", "perplexity", "token_accuracy", "exact_match",
                                "bleu", "chrf", "signatures", "seconds"});
    }
    return json;
  };
  const Json both = scores({trained(), "tiny/last.safetensors"});
  REQUIRE(both.size() == 2);
  CHECK(both[0]["checkpoint"] == "tiny/best.safetensors");
  CHECK(both[1]["checkpoint"] == "tiny/last.safetensors");
  CHECK(both[0]["sentences"] == 20);
  CHECK(both[0]["exact_match"] > 0.5);  // it has learnt to copy

  const Json valid = scores({trained(), "--split", "valid", "--beam", "1"});
  const Json history = Json::parse(run_weft({"inspect", trained(), "--json"}).out);
  for (const Json& entry : history["validations"]) {
    if (entry["step"] != history["best_step"]) continue;
    for (const char* name : {"loss", "token_accuracy", "exact_match", "bleu", "chrf"})
      CHECK(valid[0][name] == entry[name]);
  }

  Json files = scores({trained(), "--source", "test.src", "--reference", "test.trg"})[0], split = both[0];
  files.erase("seconds");
  split.erase("seconds");
  CHECK(files == split);
  check_refused({"evaluate", trained(), "--source", "test.src", "--reference", "train.trg"},
                {"test.src has 20", "train.trg has 400"});

  // What the model writes, as the reference, is a perfect score, blank lines included.
  put("some.src", "a b c\n\nd e f a\n");
  put("some.trg", run_weft({"translate", trained(), "--input", "some.src"}).out);
  const Json perfect = scores({trained(), "--source", "some.src", "--reference", "some.trg"})[0];
  CHECK(perfect["exact_match"] == 1);
  CHECK(perfect["sentences"] == 3);
  for (const int count : {1, 2, 3}) {
    Json again = scores({trained(), "--threads", std::to_string(count)})[0];
    again.erase("seconds");
    CHECK(again == split);
  }
}

TEST_CASE("evaluate reads a source from a pipe once, for all references and checkpoints") {
  const std::string best = trained();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const std::string source = bytes_of("test.src");
  REQUIRE(::write(ends[1], source.data(), source.size()) == static_cast<ssize_t>(source.size()));
  ::close(ends[1]);
  const Descriptor out("pipe.out", O_WRONLY | O_CREAT), err("pipe.err", O_WRONLY | O_CREAT);
  CHECK(wait_for(start({"evaluate", best, "tiny/last.safetensors", "--json", "--source", "/dev/stdin", "--reference",
                        "test.trg", "--reference", "test.trg"},
                       ends[0], out, err)) == 0);
  ::close(ends[0]);
  CHECK(bytes_of("pipe.err").empty());
  const Json rows = Json::parse(bytes_of("pipe.out"));
  REQUIRE(rows.size() == 2);
  for (const Json& row : rows) CHECK(row["sentences"] == 20);
}

TEST_CASE("a text to translate may begin with a byte that gzip's do too") {
  const Outcome plain = run_weft({"translate", trained()}, "\x1F a b\n");
  CHECK(plain.code == 0);
  CHECK(lines_of(plain.out).size() == 1);
  CHECK(run_weft({"translate", trained()}, "\x1F").code == 0);
  check_refused({"translate", trained()}, {"standard input: is gzipped"}, "\x1F\x8B\b");
}

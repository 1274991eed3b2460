// weft translate's ways to decode, and the files that it writes beside the translation.
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli_stream.h"
#include "weft/train/checkpoint.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;

TEST_CASE("--output takes a device, a pipe or a descriptor, which are written at once") {
  const Words plain = translated("a b\nc d\n");
  const Outcome null = run_weft(translate({"--output", "/dev/null"}), "a b\n");
  CHECK(null.code == 0);
  CHECK(null.err.empty());
  const Outcome out = run_weft(translate({"--output", "/dev/stdout"}), "a b\nc d\n");
  CHECK(out.code == 0);
  CHECK(lines_of(out.out) == plain);
  CHECK(lines_of(run_weft(translate({"--output", "/dev/fd/1"}), "a b\nc d\n").out) == plain);
  const Outcome err = run_weft(translate({"--output", "/dev/stderr"}), "a b\nc d\n");
  CHECK(err.out.empty());
  CHECK(lines_of(err.err) == plain);
  CHECK(run_weft(translate({"--attention", "/dev/stderr"}), "a b\n").err.starts_with("<?xml"));
  const Outcome full = run_weft(translate({"--output", "/dev/full"}), "a b\n");
  CHECK(full.code == 1);
  CHECK(contains(full.err, "/dev/full: cannot be written (No space left on device)"));

  REQUIRE(::mkfifo("fifo", 0600) == 0);
  Stream stream({"--output", "fifo"});
  const Descriptor reader("fifo", O_RDWR);  // so that neither side waits for the other
  stream.in.write("a b\n");
  std::string text;
  while (text.size() <= plain[0].size()) {  // before the input ends
    pollfd descriptor{reader, POLLIN, 0};
    char c = 0;
    if (::poll(&descriptor, 1, 10'000) <= 0 || ::read(reader, &c, 1) != 1) break;
    text += c;
  }
  CHECK(text == plain[0] + "\n");
  CHECK(stream.finish() == 0);
  CHECK(fs::is_fifo("fifo"));

  // What the shell appends to is not overwritten.
  put("log", "before\n");
  const Descriptor appended("log", O_WRONLY | O_APPEND), in("/dev/null", O_RDONLY),
      errors(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
  put("one.txt", "a b\n");
  CHECK(wait_for(start(translate({"--input", "one.txt", "--output", "/dev/stdout"}), in, appended, errors)) == 0);
  CHECK(bytes_of("log") == "before\n" + plain[0] + "\n");
}

TEST_CASE("a signal ends a translation without a trace of what was half written") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    trained();
    const auto before = everything();
    Stream stream({"--output", "half", "--alignment", "half.links"});
    const std::string pid = "." + std::to_string(stream.child) + ".tmp";
    for (int i = 0; i < 10'000 && !(fs::exists("half" + pid) && fs::exists("half.links" + pid)); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(everything().size() == before.size() + 2);
    ::kill(stream.child, signal);
    CHECK(wait_for(stream.child) == -signal);
    CHECK(everything() == before);
  }
}

TEST_CASE("a pipe that nobody reads is given up") {
  REQUIRE(::mkfifo("unread", 0600) == 0);
  check_refused(translate({"--output", "unread"}), {"unread: is a pipe that nobody reads; start its reader first"});
}

TEST_CASE("a model that diverged is named, also among others") {
  const auto good = weft::load_checkpoint(trained(), weft::standard_layers());
  weft::Tensor values = good.model->parameters().values();
  std::fill(values.values().begin(), values.values().end(), std::numeric_limits<weft::real>::max());
  weft::save_checkpoint("wild.safetensors", *good.model, good.state, nullptr);
  put("in.txt", "a b\n");
  const auto check_named = [](const Words& words) {
    CAPTURE(words);
    const Outcome outcome = run_weft(words);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 1);
    CHECK(
        outcome.err.starts_with("weft: wild.safetensors: the model's output is not a number; the checkpoint is from"));
    CHECK(lines_of(outcome.err).size() == 1);
  };
  const Words text{"--source", "in.txt", "--target", "in.txt"};
  check_named({"translate", "wild.safetensors", "--input", "in.txt"});
  check_named({"translate", "wild.safetensors", "--input", "in.txt", "--sample"});
  check_named({"translate", trained(), "wild.safetensors", "--input", "in.txt"});
  check_named(Words{"score", "wild.safetensors"} + text);
  check_named(Words{"score", trained(), "wild.safetensors"} + text);
  check_named({"evaluate", "wild.safetensors", "--source", "in.txt", "--reference", "in.txt"});
}

TEST_CASE("what is read is not replaced, and two outputs are two files") {
  const std::string checkpoint = trained();
  put("in.txt", "a b\n");
  std::filesystem::create_hard_link("in.txt", "linked.txt");
  check_refused({"translate", checkpoint, "--input", "in.txt", "--output", "./in.txt"}, {"would replace what is read"});
  check_refused({"translate", checkpoint, "--input", "in.txt", "--alignment", "linked.txt"}, {"would replace"});
  check_refused({"translate", checkpoint, "--output", checkpoint}, {"would replace"});
  check_refused({"translate", checkpoint, "--output", "one", "--alignment", "./one"},
                {"--output and --alignment name one"});
  check_refused({"score", checkpoint, "--source", "in.txt", "--target", "in.txt", "--output", "in.txt"},
                {"would replace"});
  check_refused({"evaluate", checkpoint, "--source", "in.txt", "--reference", "in.txt", "--output", "in.txt"},
                {"would replace"});
  check_refused({"evaluate", checkpoint, "--output", "tiny"}, {"is a folder"});
  check_refused({"plot", "tiny", "--output", "tiny/log.jsonl"}, {"would replace"});
  check_refused({"plot", checkpoint}, {"is a checkpoint", "folder of its run"});
  check_refused({"translate", checkpoint}, {"is gzipped"}, "\x1F\x8B\x08");
}

TEST_CASE("--min-length, --max-length and --no-repeat-ngram shape the translation") {
  const auto words = [](const std::string& line) { return std::count(line.begin(), line.end(), ' ') + 1; };
  CHECK(words(translated("a b c d e\n", {"--max-length", "2"})[0]) == 2);
  CHECK(words(translated("a b c d e\n", {"--max-length", "2", "--beam", "1"})[0]) == 2);
  CHECK(words(translated("a b\n", {"--min-length", "5"})[0]) >= 5);
  CHECK(words(translated("a b\n")[0]) < 5);
  const std::string line = "a b a b a b";
  CHECK(translated(line + "\n")[0] == line);
  const std::string other = translated(line + "\n", {"--no-repeat-ngram", "2"})[0];
  std::set<std::string> pairs;
  for (std::size_t i = 0; i + 2 < other.size(); i += 2) CHECK(pairs.insert(other.substr(i, 3)).second);
  CHECK(other != line);
}

TEST_CASE("--sample draws the same from a seed, in whatever order lines come, and other lines from another") {
  const Words lines = lines_of(joined(weft::letters(20, 9, 3, 7).source));
  const Words hot{"--sample", "--temperature", "3"};
  const Words drawn = translated(joined(lines), hot);
  REQUIRE(drawn.size() == lines.size());
  CHECK(translated(joined(lines), hot) == drawn);
  for (const char* threads : {"1", "3"}) CHECK(translated(joined(lines), hot + Words{"--threads", threads}) == drawn);
  CHECK(translated(joined(lines), hot + Words{"--seed", "2"}) != drawn);
  CHECK(translated(joined(lines)) != drawn);
  CHECK(translated(joined(lines), {"--sample", "--top-k", "1"}) == translated(joined(lines), {"--beam", "1"}));
  CHECK(translated(joined(lines), {"--sample", "--top-p", "0.000001"}) == translated(joined(lines), {"--beam", "1"}));

  Stream stream(hot);  // line by line
  for (std::size_t i = 0; i < 3; ++i) {
    stream.in.write(lines[i] + "\n");
    CHECK(stream.out.read_lines(1) == drawn[i] + "\n");
  }
  CHECK(stream.finish() == 0);

  const Words several = translated(lines[0] + "\n\n" + lines[1] + "\n", hot + Words{"--n-best", "8"});
  REQUIRE(several.size() == 8 + 1 + 8);  // more than the beam of the configuration
  CHECK(several[0].starts_with("1 ||| " + drawn[0] + " ||| -"));
  CHECK(std::set<std::string>(several.begin(), several.begin() + 8).size() > 2);
  CHECK(several[8] == "2 |||  ||| 0.000000");
}

TEST_CASE("--alignment and --soft-alignment give a line for each line of the output") {
  const std::string text = "a b c\n\nd e\n";
  const Words plain = translated(text);
  CHECK(translated(text, {"--alignment", "links", "--soft-alignment", "soft"}) == plain);
  const Words links = lines_of(bytes_of("links")), soft = lines_of(bytes_of("soft"));
  REQUIRE(links.size() == 3);
  REQUIRE(soft.size() == 3);
  CHECK(links[1].empty());
  for (const std::size_t i : {0u, 2u}) {
    const auto json = nlohmann::json::parse(soft[i]);
    CHECK(json["line"] == i + 1);
    const Words target = json["target"], source = json["source"];
    CHECK(source.back() == "</s>");
    REQUIRE(json["weights"].size() == target.size());
    std::string expected, output;
    for (std::size_t j = 0; j < target.size(); ++j) {
      const std::vector<double> weights = json["weights"][j];
      REQUIRE(weights.size() == source.size());
      CHECK(std::accumulate(weights.begin(), weights.end(), 0.0) == doctest::Approx(1).epsilon(1e-4));
      if (j + 1 == target.size()) break;
      const auto best = std::max_element(weights.begin(), weights.end() - 1) - weights.begin();
      const std::string space = j == 0 ? "" : " ";
      expected += space + std::to_string(best) + "-" + std::to_string(j);
      output += space + target[j];
    }
    CHECK(links[i] == expected);
    CHECK(output == plain[i]);
  }
  translated(text, {"--alignment", "links", "--n-best", "2"});
  CHECK(lines_of(bytes_of("links")).size() == 2 + 1 + 2);
  CHECK(run_weft(translate({"--alignment", "/dev/stderr", "--output", "/dev/null"}), "a b c\n").err == links[0] + "\n");
}

TEST_CASE("several checkpoints translate together; of other vocabularies they do not") {
  const Words lines = lines_of(joined(weft::letters(20, 9, 1, 7).source));
  const Words alone = translated(joined(lines));
  CHECK(translated(joined(lines), {trained()}) == alone);
  const Outcome second =
      run_weft({"train", "tiny.json", "--run", "second", "--set", "training.seed=5", "--set", "training.steps=100"});
  REQUIRE(second.code == 0);
  const Words together = translated(joined(lines), {"second/best.safetensors"});
  std::size_t right = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) right += together[i] == lines[i] ? 1 : 0;
  CHECK(right > lines.size() / 2);
  const Words scores = translated(lines[0] + "\n", {"--n-best", "1"});
  CHECK(translated(lines[0] + "\n", {"--n-best", "1", "second/best.safetensors"}) != scores);
  const Outcome other = run_weft({"train", "tiny.json", "--run", "other", "--set", "data.max_vocabulary=7", "--set",
                                  "training.steps=2", "--set", "training.validate_every=2"});
  REQUIRE(other.code == 0);
  check_refused(translate({"other/best.safetensors"}),
                {trained() + " and other/best.safetensors: their source vocabularies differ", "same text"});
}

TEST_CASE("--replace-unknown copies words that the model does not know") {
  trained();
  // A vocabulary without the letters e and f, or whichever are rarest: the model learns where to write <unk>.
  const Outcome training = run_weft({"train", "tiny.json", "--run", "unknown", "--set", "data.max_vocabulary=7"});
  REQUIRE(training.code == 0);
  const Words lines = lines_of(joined(weft::letters(60, 21, 2, 6).source));
  const auto right = [&](const Words& more) {
    const Outcome outcome = run_weft(Words{"translate", "unknown/best.safetensors"} + more, joined(lines));
    REQUIRE(outcome.code == 0);
    const Words found = lines_of(outcome.out);
    CHECK_FALSE(contains(outcome.out, "<unk>"));
    std::size_t count = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) count += found.at(i) == lines[i] ? 1 : 0;
    return count;
  };
  const std::size_t with = right({"--replace-unknown"}), without = right({});
  CAPTURE(with);
  CAPTURE(without);
  CHECK(with > lines.size() / 2);
  CHECK(without < lines.size() / 3);
}

TEST_CASE("what is read is not written to through a descriptor either") {
  const std::string checkpoint = trained();
  const auto refused = [&](const Words& words, int in, const std::string& output) {
    const std::string before = bytes_of(output);
    const Descriptor appended(output, O_WRONLY | O_APPEND), errors(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    CAPTURE(words);
    CHECK(wait_for(start(words, in, appended, errors)) == 2);
    CHECK(contains(bytes_of(workplace() / "err"), "standard output: goes to "));
    CHECK(bytes_of(output) == before);
  };
  rlimit size{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &size) == 0);
  const rlimit small{1 << 16, size.rlim_max};  // of a program that is not refused and never comes to an end
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  put("looped.txt", "a b\n");
  const Descriptor none("/dev/null", O_RDONLY), looped("looped.txt", O_RDONLY);
  refused(translate({"--input", "looped.txt"}), none, "looped.txt");
  refused(translate(), looped, "looped.txt");
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"}) {
    refused(translate({"--input", "looped.txt", "--output", name}), none, "looped.txt");
  }
  refused({"score", checkpoint, "--source", "looped.txt", "--target", "looped.txt"}, none, "looped.txt");
  refused({"evaluate", checkpoint, "--source", "looped.txt", "--reference", "valid.trg"}, none, "looped.txt");
  refused({"plot", "tiny"}, none, "tiny/log.jsonl");
  refused(translate({"--input", "looped.txt"}), none, "train.src");
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &size) == 0);
}

TEST_CASE("an output is not lost where its file is that of another stream, or its descriptor that of a closed input") {
  const std::string checkpoint = trained();
  put("one.txt", "a b\n");
  const std::string translate = "translate " + checkpoint + " --input one.txt ",
                    score = "score " + checkpoint + " --source one.txt --target one.txt ";
  const auto run = [](const std::string& command) {
    const std::string line = std::string("{ \"") + WEFT_BINARY + "\" " + command + "; } 2>said.err";
    return WEXITSTATUS(std::system(line.c_str()));
  };
  for (const std::string& command :
       {translate + "--alignment both >both", score + "--alignment both >both",
        "evaluate " + checkpoint + " --output both >both", translate + "--output both 2>both",
        translate + "--output both --alignment /dev/fd/3 3>both"}) {
    CAPTURE(command);
    CHECK(run(command) == 2);
    CHECK(contains(bytes_of("said.err") + bytes_of("both"), "would replace the file that "));
  }
  CHECK(run(translate + "--alignment /dev/fd/0 <&-") == 1);
  CHECK(contains(bytes_of("said.err"), "/dev/fd/0: cannot be written (Bad file descriptor)"));
  CHECK(run(score + "--output whole 2>&-") == 0);
  CHECK(lines_of(bytes_of("whole")).size() == 1);
}

TEST_CASE("a text of a run is not replaced either where its name leads elsewhere") {
  const std::string checkpoint = fs::absolute(trained()).string();
  fs::create_directories("elsewhere");
  put("elsewhere/one.txt", "a b\n");
  put("elsewhere/empty", "");
  fs::current_path("elsewhere");
  const std::string before = bytes_of("../train.trg");
  for (const Words& words : {Words{"translate", checkpoint, "--input", "one.txt"},
                             Words{"score", checkpoint, "--source", "one.txt", "--target", "one.txt"},
                             Words{"evaluate", checkpoint, "--source", "one.txt", "--reference", "one.txt"}}) {
    check_refused(words + Words{"--output", "../train.trg"},
                  {"--output ../train.trg: would replace a text that the run of "});
    for (const char* other : {"empty", "../test.trg.mine"}) CHECK(run_weft(words + Words{"--output", other}).code == 0);
    const Descriptor none("/dev/null", O_RDONLY), appended("../train.trg", O_WRONLY | O_APPEND),
        errors(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    CHECK(wait_for(start(words, none, appended, errors)) == 2);
    CHECK(contains(bytes_of(workplace() / "err"), "standard output: goes to "));
    CHECK(wait_for(start(words, none, errors, appended)) == 2);
  }
  CHECK(bytes_of("../train.trg") == before);
  fs::current_path("..");
}

TEST_CASE("a descriptor that /proc names is written to, and not replaced") {
  const Words plain = translated("a b\n");
  put("one.txt", "a b\n");
  const Descriptor none("/dev/null", O_RDONLY);
  fs::create_symlink("/proc/self/fd/1", "out.link");
  for (const char* name : {"/proc/self/fd/1", "/dev/../dev/fd/1", "out.link"}) {
    put("log", "before\n");
    const Descriptor appended("log", O_WRONLY | O_APPEND), errors(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    CHECK(wait_for(start(translate({"--input", "one.txt", "--output", name}), none, appended, errors)) == 0);
    CHECK(bytes_of("log") == "before\n" + plain[0] + "\n");
  }
}

TEST_CASE("an output that cannot be or may not be replaced is refused before any work") {
  const std::string checkpoint = trained();
  put("kept", "kept\n");
  fs::create_symlink("one", "link of one");
  fs::permissions("kept", fs::perms::owner_read);
  fs::create_symlink("loop", "loop");
  const Outcome looped = run_weft(translate({"--output", "loop"}), "a\n");
  CHECK(contains(looped.err, "--output loop: cannot be looked at: Too many levels of symbolic links"));
  check_refused(translate({"--output", "kept"}), {"--output kept: is protected from being written"});
  check_refused({"evaluate", checkpoint, "--output", "kept"}, {"protected"});
  const Outcome outcome = run_weft({"evaluate", checkpoint, "--output", std::string(250, 'x')});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.empty());
  CHECK(contains(outcome.err, "choose a shorter name"));
  check_refused(translate({"--output", "one", "--alignment", "link of one"}), {"--output and --alignment name one"});
  const Outcome closed = run_weft({"evaluate", checkpoint, "--output", "/dev/fd/9"});
  CHECK(closed.code == 1);
  CHECK(contains(closed.err, "/dev/fd/9: cannot be written (Bad file descriptor)"));
  fs::create_symlink("gone", "lost");
  check_refused(translate({"--output", "lost/x"}), {"--output lost/x: lost is a link to gone, which leads to nothing"});
  check_refused(translate({"--input", "lost"}), {"lost: is a link to gone, which leads to nothing"});
  CHECK(run_weft(translate({"--output", "lost"}), "a\n").code == 0);
  CHECK(fs::is_symlink("lost"));
  CHECK(fs::exists("gone"));
}

TEST_CASE("files of a run are not replaced by a picture or a text, nor its checkpoints by an average") {
  const std::string checkpoint = trained();
  put("one.txt", "a b\n");
  for (const char* file : {"last.safetensors", "step-7.safetensors", "config.json", "log.jsonl"}) {
    const std::string name = std::string("tiny/") + file;
    check_refused(translate({"--input", "one.txt", "--output", name}), {"is the name of a run's own file"});
    if (name != "tiny/log.jsonl")
      check_refused({"plot", "tiny", "--output", name}, {"is the name of a run's own file"});
  }
  fs::create_symlink("tiny/step-7.safetensors", "step");
  for (const char* name : {"tiny/step-7.safetensors", "step"}) {
    check_refused({"average", name, checkpoint, checkpoint}, {"name another file"});
  }
  check_refused(translate({"--input", "one.txt", "--output", "step"}), {"is the name of a run's own file"});
  CHECK(run_weft({"average", std::string(300, 'x'), checkpoint, checkpoint}).err.starts_with("weft: xxx"));
}

TEST_CASE("text of every checkpoint that works in an ensemble is safe from its outputs") {
  const std::string checkpoint = trained();
  fs::create_directory("moved");
  for (const char* name : {"train.src", "train.trg"}) put(std::string("moved/") + name, bytes_of(name) + "\n");
  const Outcome outcome =
      run_weft({"train", "tiny.json", "--run", "moved/run", "--set", "data.train_source=moved/train.src", "--set",
                "training.steps=1", "--set", "training.validate_every=1"});
  REQUIRE(outcome.code == 0);
  const std::string other = "moved/run/best.safetensors";
  check_refused({"translate", checkpoint, other, "--input", "test.src", "--output", "moved/train.src"},
                {"would replace"});
  for (const char* option : {"--output", "--alignment"}) {
    check_refused(
        {"score", checkpoint, other, "--source", "test.src", "--target", "test.trg", option, "moved/train.src"},
        {"would replace"});
  }
}

TEST_CASE("a signal ends the program also where it is process 1, of a container") {
  const Words words = translate({"--output", "never"});
  Pipe in;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(77);
    const Descriptor out("/dev/null", O_WRONLY);
    const pid_t first = start(words, in.ends[0], out, out);
    const std::string half = "never.1.tmp";
    for (int i = 0; i < 10'000 && !fs::exists(half); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(first, SIGTERM);
    // One that does not end by the signal ends with its input, and then otherwise.
    in.close_write();
    ::_exit(wait_for(first) == 128 + SIGTERM ? 0 : 1);
  }
  in.close_write();
  const int code = wait_for(child);
  if (code == 77) return;  // no namespaces here
  CHECK(code == 0);
  CHECK_FALSE(fs::exists("never"));
}

// weft translate's ways to decode, and the files that it writes beside the translation.
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

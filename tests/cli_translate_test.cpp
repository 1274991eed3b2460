// weft translate through the real binary: a line for a line, whatever the lines hold and however they come.
#include "cli.h"

#include <poll.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "weft/core/random.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;

namespace {

Words translate(const Words& more = {}) { return Words{"translate", trained()} + more; }

/// Translates text that must go well, and gives the lines.
Words translated(const std::string& text, const Words& more = {}, const Words& variables = {}) {
  const Outcome outcome = run_weft(translate(more), text, variables);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  return lines_of(outcome.out);
}

/// Two ends of a pipe.
struct Pipe {
  Pipe() { REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close_read(), close_write(); }
  void close_read() { close_end(0); }
  void close_write() { close_end(1); }
  void close_end(int which) {
    if (ends[which] >= 0) ::close(ends[which]);
    ends[which] = -1;
  }
  void write(const std::string& text) const {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  /// What comes until `lines` line ends have come; less after ten seconds.
  std::string read_lines(std::ptrdiff_t lines) const {
    std::string text;
    char c = 0;
    while (std::count(text.begin(), text.end(), '\n') < lines) {
      pollfd descriptor{ends[0], POLLIN, 0};
      if (::poll(&descriptor, 1, 10'000) <= 0 || ::read(ends[0], &c, 1) != 1) break;
      text += c;
    }
    return text;
  }

  int ends[2] = {-1, -1};
};

/// weft translate with pipes for its input and output.
struct Stream {
  explicit Stream(const Words& more = {}) {
    const Words words = translate(more);
    const Descriptor err(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    child = start(words, in.ends[0], out.ends[1], err);
    in.close_read();
    out.close_write();
  }
  int finish() {
    in.close_write();
    return wait_for(child);
  }
  Pipe in, out;
  pid_t child;
};

}  // namespace

TEST_CASE("a line's translation depends on nothing but the line") {
  const Words lines = lines_of(joined(weft::letters(40, 9, 1, 7).source));
  const Words together = translated(joined(lines));
  REQUIRE(together.size() == lines.size());
  std::size_t right = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) right += together[i] == lines[i] ? 1 : 0;
  CHECK(right > lines.size() / 2);  // it has learnt to copy
  for (std::size_t i = 0; i < 8; ++i) CHECK(translated(lines[i] + "\n") == Words{together[i]});

  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  weft::Random(3).shuffle(order);
  Words shuffled;
  for (const std::size_t i : order) shuffled.push_back(lines[i]);
  const Words after = translated(joined(shuffled));
  REQUIRE(after.size() == lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(after[i] == together[order[i]]);

  put("lines.txt", joined(lines));
  CHECK(translated("", {"--input", "lines.txt"}) == together);
  CHECK(run_weft(translate({"--input", "lines.txt", "--output", "lines.out"})).code == 0);
  CHECK(bytes_of("lines.out") == joined(together));
  for (const char* threads : {"1", "2", "3"}) CHECK(translated(joined(lines), {"--threads", threads}) == together);
  for (const char* count : {"1", "2", "64", "0", "-1", "abc", ""}) {
    CAPTURE(count);
    CHECK(translated(joined(lines), {}, {std::string("OMP_NUM_THREADS=") + count}) == together);
  }
}

TEST_CASE("blank lines stay blank and keep their place") {
  const Words plain = translated("a b\nc d\ne f\n");
  const std::string nbsp = "\xC2\xA0", zero_width = "\xE2\x80\x8B";
  CHECK(translated("\na b\n\n   \nc d\n" + nbsp + nbsp + "\n\t\n" + zero_width + "\n\ne f\n\n") ==
        Words{"", plain[0], "", "", plain[1], "", "", "", "", plain[2], ""});
  // The model is not asked: it would give two.
  CHECK(translated("\n" + nbsp + "\n" + zero_width + "\n", {"--n-best", "2"}) ==
        Words{"1 |||  ||| 0.000000", "2 |||  ||| 0.000000", "3 |||  ||| 0.000000"});
  CHECK(translated("\n \n\n") == Words{"", "", ""});
  CHECK(translated("").empty());
  CHECK(translated("\n") == Words{""});
  put("empty.txt", "");
  CHECK(run_weft(translate({"--input", "empty.txt", "--output", "empty.out"})).code == 0);
  CHECK(fs::exists("empty.out"));
  CHECK(bytes_of("empty.out").empty());
}

TEST_CASE("a last line without newline counts; CR LF, a byte order mark and odd spaces change nothing") {
  const Words plain = translated("a b\nc d\n");
  CHECK(translated("a b\nc d") == plain);
  CHECK(translated("a b\r\nc d\r\n") == plain);
  CHECK(translated("\xEF\xBB\xBF"
                   "a b\nc d\n") == plain);
  CHECK(translated("  a \t b\nc\xC2\xA0"
                   "d \n") == plain);
}

TEST_CASE("NUL and bytes that are not UTF-8 are replaced with a warning; the lines stay") {
  std::string text = "a b\nc \xE9\xFF d\n";
  text += std::string("e\0f\n", 4) + "\xC0\xAF\n\xED\xA0\x80\n\xF4\x90\x80\x80\na b\n";
  const Outcome outcome = run_weft(translate(), text);
  CHECK(outcome.code == 0);
  const Words lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 7);
  CHECK(lines[0] == translated("a b\n")[0]);
  CHECK(lines[6] == lines[0]);
  CHECK(outcome.err ==
        "weft: warning: standard input: 12 bytes in lines 1 to 7 are not UTF-8 text; replaced by U+FFFD\n");
}

TEST_CASE("UTF-16 is named and refused") {
  check_refused(translate(), {"standard input: this is UTF-16", "iconv"},
                std::string("\xFF\xFE"
                            "a\0\n\0",
                            6));
}

TEST_CASE("a line of more tokens than the model holds is cut with a warning that names it") {
  const Outcome outcome = run_weft(translate(), "a b\na b c d e f a b c d e f\nc d\n");
  CHECK(outcome.code == 0);
  CHECK(lines_of(outcome.out).size() == 3);
  CHECK(lines_of(outcome.out)[2] == translated("c d\n")[0]);
  CHECK(lines_of(outcome.out)[1] == translated("a b c d e f a b c\n")[0]);
  CHECK(outcome.err ==
        "weft: warning: standard input:2: the model holds 9 tokens; the last 3 of this line were left out\n");
}

TEST_CASE("each line is answered before the next is written") {
  const Words expected = translated("a b\nc d\n\ne f\n");
  Stream stream;
  stream.in.write("a b\n");
  CHECK(stream.out.read_lines(1) == expected[0] + "\n");
  stream.in.write("c d\n\n");
  CHECK(stream.out.read_lines(2) == expected[1] + "\n\n");
  stream.in.write("e f\na");  // the beginning of a line does not hold back the one before
  CHECK(stream.out.read_lines(1) == expected[3] + "\n");
  stream.in.write(" b\n");
  CHECK(stream.out.read_lines(1) == expected[0] + "\n");
  stream.in.write("c d");
  stream.in.close_write();
  CHECK(stream.out.read_lines(2) == expected[1] + "\n");
  CHECK(stream.finish() == 0);
}

TEST_CASE("more lines than are taken at once, and lines longer than the buffer") {
  std::string text, expected;
  const Words answers = translated("a b\n\nc\n");
  for (int i = 0; i < 3000; ++i) {
    text += i % 3 == 0 ? "a b\n" : i % 3 == 1 ? "\n" : "c\n";
    expected += answers[static_cast<std::size_t>(i % 3)] + "\n";
  }
  CHECK(joined(translated(text)) == expected);
  std::string longest = "a b c d e f a b c";
  for (int i = 0; i < 50'000; ++i) longest += " d e";
  const Outcome outcome = run_weft(translate(), "a b\n" + longest + "\nc\n");
  CHECK(outcome.code == 0);
  CHECK(outcome.out == answers[0] + "\n" + translated("a b c d e f a b c\n")[0] + "\n" + answers[2] + "\n");
  CHECK(contains(outcome.err, "standard input:2: "));
}

TEST_CASE("--n-best numbers the lines, best first with scores, and --beam decides how many there can be") {
  const Words best = translated("a b c\n\nd e\n", {"--beam", "5"});
  const Words lines = translated("a b c\n\nd e\n", {"--n-best", "3", "--beam", "5"});
  REQUIRE(lines.size() == 3 + 1 + 3);
  std::vector<double> scores;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string number = i < 3 ? "1" : i == 3 ? "2" : "3";
    CHECK(lines[i].starts_with(number + " ||| "));
    const std::size_t second = lines[i].find(" ||| ", 5);
    REQUIRE(second != std::string::npos);
    scores.push_back(std::stod(lines[i].substr(second + 5)));
    if (i == 0) CHECK(lines[i].substr(6, second - 6) == best[0]);
    if (i == 4) CHECK(lines[i].substr(6, second - 6) == best[2]);
  }
  CHECK(lines[3] == "2 |||  ||| 0.000000");
  CHECK(scores[0] >= scores[1]);
  CHECK(scores[1] >= scores[2]);
  CHECK(scores[4] >= scores[5]);
  // A beam beyond the vocabulary: as many as there are, all different.
  const Words many = translated("a\n", {"--n-best", "500", "--beam", "500"});
  CHECK(std::set<std::string>(many.begin(), many.end()).size() == many.size());
  CHECK(many.size() <= 500);
  CHECK(many.size() > 9);
  for (const std::string& line : many) {
    CHECK_FALSE(contains(line, "<"));
    CHECK_FALSE(contains(line, "inf"));
  }
}

TEST_CASE("--attention draws the first line that has words") {
  const Outcome outcome = run_weft(translate({"--attention", "attention.svg"}), "\n \na b c\nd e\n");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(lines_of(outcome.out).size() == 4);
  const std::string svg = bytes_of("attention.svg");
  CHECK(svg.starts_with("<?xml"));
  CHECK(contains(svg, "<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(contains(svg, "a b c"));
  const Outcome none = run_weft(translate({"--attention", "none.svg"}), "\n\n");
  CHECK(none.code == 0);
  CHECK(contains(none.err, "no line had words"));
  CHECK_FALSE(fs::exists("none.svg"));
}

TEST_CASE("output that cannot be written is an error, and quickly") {
  const Outcome full = run_weft(translate(), "a b\n", {}, "/dev/full");
  CHECK(full.code == 1);
  CHECK(full.err.starts_with("weft: standard output: cannot write"));

  Stream closed;
  closed.in.write("a b\n");
  CHECK(closed.out.read_lines(1).ends_with("\n"));
  closed.out.close_read();
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "c d\n";
  closed.in.write(many);
  CHECK(closed.finish() == 1);
  CHECK(lines_of(bytes_of(workplace() / "err")).size() == 1);
  CHECK(contains(bytes_of(workplace() / "err"), "Broken pipe"));
}

TEST_CASE("--output replaces its file whole or not at all") {
  put("kept.txt", "what was there\n");
  put("bad.txt", std::string("\xFF\xFE"
                             "a\0",
                             4));
  check_refused(translate({"--input", "bad.txt", "--output", "kept.txt"}), {"UTF-16"});
  CHECK(bytes_of("kept.txt") == "what was there\n");

  Stream stream({"--output", "kept.txt"});
  stream.in.write("a b\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(bytes_of("kept.txt") == "what was there\n");
  CHECK(stream.finish() == 0);
  CHECK(bytes_of("kept.txt") == translated("a b\n")[0] + "\n");

  put("same.txt", "a b\nc d\n");  // onto itself
  CHECK(run_weft(translate({"--input", "same.txt", "--output", "same.txt"})).code == 0);
  CHECK(lines_of(bytes_of("same.txt")) == translated("a b\nc d\n"));
}

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

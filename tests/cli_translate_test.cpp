// weft translate through the real binary: a line for a line, whatever the lines hold and however they come.
#include "cli_stream.h"

#include <limits>
#include <numeric>

#include "weft/core/random.h"
#include "weft/core/safetensors.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;

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
        "weft: warning: standard input: lines 1 to 7 have 12 bytes that no UTF-8 text has; replaced by U+FFFD\n");
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
}

TEST_CASE("lengths that contradict one another are named where they were given") {
  trained();
  const Words few{"--set", "training.steps=1", "--set", "decoding.min_length=5"};
  REQUIRE(run_weft(Words{"train", "tiny.json", "--run", "few"} + few).code == 0);
  check_refused({"translate", "few/last.safetensors", "--max-length", "4"},
                {"decoding.min_length 5 of few/last.safetensors (--min-length says another)", "is more than --max-length 4"});
  check_refused({"translate", "few/last.safetensors", "--max-length", "4", "--min-length", "6"},
                {"--min-length 6 is more than --max-length 4"});
}

TEST_CASE("a checkpoint with a number that is not finite is refused by all that use it, and shown by inspect") {
  {
    const auto file = weft::SafetensorsFile::open(trained());
    weft::SafetensorsWriter writer;
    for (const auto& [key, value] : file.metadata()) writer.set_metadata(key, value);
    std::vector<std::vector<weft::real>> tensors;
    for (const auto& entry : file.entries()) {
      auto& values = tensors.emplace_back(static_cast<std::size_t>(entry.elements()));
      file.read(entry.name, values);
      if (entry.name == "output.bias") values[4] = -std::numeric_limits<weft::real>::infinity();
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      writer.add(file.entries()[i].name, file.entries()[i].shape, std::span<const weft::real>(tensors[i]));
    }
    writer.write("minf.safetensors");
  }
  const std::string minf = "minf.safetensors", why = "minf.safetensors: output.bias[4] is -inf";
  check_refused({"translate", trained(), minf}, {why}, "a b\n");
  check_refused({"evaluate", minf}, {why});
  check_refused({"score", minf, minf, "--source", "test.src", "--target", "test.trg"}, {why});
  check_refused({"average", "mean.safetensors", trained(), minf}, {why});
  check_refused({"train", "tiny.json", "--run", "from", "--from", minf}, {why});
  CHECK(contains(run_weft({"inspect", minf}).out, "output.bias"));
}

TEST_CASE("a loss that is not a number ends weft evaluate, though the translations are numbers") {
  const auto model = weft::load_checkpoint(trained(), weft::standard_layers()).model;
  const weft::Index word = model->target_vocabulary().id("a");
  for (const weft::ParameterEntry& entry : model->parameters().entries()) {
    weft::Tensor value = model->parameters().value(entry);
    if (entry.name == "output.bias") value.data()[word] = -1e6;  // is never written
    if (entry.name != "target_embedding.weight") continue;
    std::fill_n(value.data() + word * 32, 32, std::numeric_limits<weft::real>::max());
  }
  weft::save_checkpoint("wild.safetensors", *model, {}, nullptr);
  put("b.txt", "b\n");
  put("a.txt", "a\n");
  const Words words{"evaluate", "wild.safetensors", "--source", "b.txt", "--reference"};
  CHECK(run_weft(words + Words{"b.txt"}).code == 0);
  const Outcome outcome = run_weft(words + Words{"a.txt"});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.starts_with("weft: wild.safetensors: the model's output is not a number"));
}

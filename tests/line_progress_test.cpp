// The live line of weft translate and weft evaluate: on a terminal only, within its width, and gone at the end.
#include "weft/train/line_progress.h"

#include <cstdlib>

#include "cli_stream.h"

using namespace weft::cli;
using weft::contains;
using weft::format_line_progress;
using weft::put;

namespace {

/// Runs weft with a terminal for its errors; returns what is written there.
std::string shown(const Words& words, const fs::path& output, const std::string& term = "TERM=xterm") {
  const Descriptor master("/dev/ptmx", O_RDWR | O_NOCTTY);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  const Descriptor screen(::ptsname(master), O_RDWR | O_NOCTTY), in("/dev/null", O_RDONLY),
      out(output, O_WRONLY | O_CREAT | O_TRUNC);
  CAPTURE(words);
  CHECK(wait_for(start(words, in, out, screen, {term})) == 0);
  const std::string end = "<end>";  // bytes cross a terminal in pieces and with delay
  REQUIRE(::write(screen, end.data(), end.size()) == static_cast<ssize_t>(end.size()));
  std::string text;
  for (pollfd descriptor{master, POLLIN, 0}; !text.ends_with(end) && ::poll(&descriptor, 1, 10'000) > 0;) {
    char bytes[4096];
    const ssize_t count = ::read(master, bytes, sizeof bytes);
    if (count <= 0) break;
    text.append(bytes, static_cast<std::size_t>(count));
  }
  REQUIRE(text.ends_with(end));
  return text.substr(0, text.size() - end.size());
}

const std::string kErase = "\r\x1b[K";

}  // namespace

TEST_CASE("what is known is written, as far as there is room") {
  CHECK(format_line_progress(1234, 0, 10, 80) == "1,234 lines translated  123 lines/s");
  CHECK(format_line_progress(500, 2000, 100, 80) == "500/2,000 lines translated  5.0 lines/s  5m 00s left");
  CHECK(format_line_progress(2000, 2000, 100, 80) == "2,000/2,000 lines translated  20 lines/s");
  CHECK(format_line_progress(0, 0, 0, 80) == "0 lines translated");
  CHECK(format_line_progress(1, 0, 0, 80) == "1 line translated");
  CHECK(format_line_progress(1234, 0, 10, 10) == "1,234 lin…");
}

TEST_CASE("translate and evaluate show their progress on a terminal, and erase it") {
  trained();
  put("some.txt", "a b\n\nc d\n");
  const Words words = translate({"--input", "some.txt"});
  for (const std::string& text : {shown(words, "out.txt"), shown(words + Words{"--output", "new.txt"}, "/dev/null")}) {
    CHECK(text.starts_with("\r1 line translated"));  // the blank one
    CHECK(text.ends_with(kErase));
    CHECK_FALSE(contains(text, "\n"));
  }
  const std::string text = shown({"evaluate", trained()}, "out.txt");
  CHECK(text.starts_with("\r0/20 lines translated"));
  CHECK(text.ends_with(kErase));
  CHECK(lines_of(weft::bytes_of("out.txt")).size() > 1);

  put("long.txt", "a a a a a a a a a a a a\n");  // warned of where the line of progress was
  CHECK(
      contains(shown(translate({"--input", "long.txt"}), "out.txt"), kErase + "weft: warning: long.txt:1: the model"));
}

TEST_CASE("there is no progress to see where it would disturb or could not be erased") {
  trained();
  put("some.txt", "a b\n");
  const Words words = translate({"--input", "some.txt"});
  CHECK(shown(words, "out.txt", "TERM=dumb").empty());
  CHECK(shown(words, "/dev/null").empty());  // to no file, so perhaps to this terminal
  CHECK(shown(words + Words{"--output", "/dev/null"}, "out.txt").empty());
  CHECK(run_weft(words).err.empty());
  CHECK(run_weft({"evaluate", trained()}).err.empty());
}

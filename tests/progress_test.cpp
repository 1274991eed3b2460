#include "weft/train/progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>
#include <string>

#include "weft/train/stop_signal.h"
#include "weft/train/text_format.h"

using namespace weft;

namespace {

ProgressState state_at(Index step) {
  ProgressState state;
  state.step = step;
  state.steps = 4000;
  state.epoch = 3;
  state.loss = 2.0;
  state.learning_rate = 5e-4;
  state.tokens_per_second = 12345.4;
  state.seconds_left = 83;
  return state;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// What a Progress writes to something that is no terminal.
template <typename F>
std::string written(bool quiet, Index log_every, F&& use) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(file, quiet, log_every);
    use(progress);
  }
  std::rewind(file);
  std::string text;
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("a wide line says everything") {
  const std::string line = format_progress(state_at(1200), 120);
  for (const char* const part :
       {"━", "1,200/4,000", "epoch 3", "loss 2.0000", "ppl 7.39", "lr 5.00e-04", "12,345 tok/s", "1m 23s left"}) {
    CAPTURE(part);
    CHECK(has(line, part));
  }
  CHECK(display_width(line) == 120);
}

TEST_CASE("a line never exceeds the width, and loses what matters least first") {
  for (Index width = 0; width <= 200; ++width) CHECK(display_width(format_progress(state_at(3999), width)) <= width);
  const std::string narrow = format_progress(state_at(1200), 40);
  CHECK(has(narrow, "1,200/4,000"));
  CHECK(has(narrow, "loss 2.0000"));
  CHECK(has(narrow, "left"));
  CHECK_FALSE(has(narrow, "lr"));
  CHECK_FALSE(has(narrow, "tok/s"));
}

TEST_CASE("the bar fills") {
  const auto filled = [](Index step) {
    const std::string line = format_progress(state_at(step), 130);
    Index n = 0;
    for (std::size_t at = 0; (at = line.find("━", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(filled(0) == 0);
  CHECK(filled(2000) > 5);
  CHECK(filled(4000) == 2 * filled(2000));
  CHECK_FALSE(has(format_progress(state_at(4000), 130), "─"));
  CHECK_FALSE(has(format_progress(state_at(4000), 130), "left"));
}

TEST_CASE("numbers that are out of hand are shown and do no harm") {
  ProgressState state = state_at(10);
  state.loss = 1000;
  CHECK(has(format_progress(state, 150), "ppl inf"));
  state.loss = -std::numeric_limits<double>::quiet_NaN();
  CHECK(has(format_progress(state, 150), "loss nan"));
  CHECK(has(format_progress(state, 150), "ppl nan"));
  state.loss = std::numeric_limits<double>::infinity();
  CHECK(has(format_progress(state, 150), "loss inf"));
  state.tokens_per_second = std::numeric_limits<double>::infinity();
  state.seconds_left = std::nan("");
  CHECK(has(format_progress(state, 150), "? tok/s"));
  CHECK(has(format_progress(state, 150), "? left"));
  CHECK(has(format_progress(ProgressState{}, 150), "0/0"));
}

TEST_CASE("where there is no terminal, plain lines come at intervals and at the end") {
  const auto run = [](Progress& progress) {
    progress.line("hello");
    for (Index step = 3990; step <= 4000; ++step) progress.update(state_at(step));
    progress.finish();
  };
  const std::string text = written(false, 4, run);
  CHECK(text.rfind("hello\nstep 3,992/4,000  epoch 3  loss 2.0000", 0) == 0);
  CHECK(has(text, "\nstep 3,996/4,000"));
  CHECK(has(text, "\nstep 4,000/4,000"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  CHECK_FALSE(has(text, "\r"));
  CHECK_FALSE(has(text, "\x1b"));
  CHECK_FALSE(has(text, "━"));
  CHECK(written(false, 7, [](Progress& p) { p.update(state_at(4000)); }).rfind("step 4,000", 0) == 0);
  CHECK(written(true, 4, run) == "");
}

TEST_CASE("on a terminal one line is redrawn in place") {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return;  // no pseudo-terminals here
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  if (slave < 0) return;
  winsize size{};
  size.ws_col = 60;
  size.ws_row = 20;
  REQUIRE(ioctl(slave, TIOCSWINSZ, &size) == 0);
  setenv("TERM", "xterm", 1);
  std::FILE* const out = fdopen(slave, "w");
  REQUIRE(out != nullptr);
  {
    Progress progress(out, false);
    for (Index step = 971; step <= 1000; ++step) progress.update(state_at(step));
    progress.line("saved");
    progress.finish();
    progress.finish();
  }
  // Bytes cross a pseudo-terminal in pieces and with delay: read until the marker that ends them.
  std::fputs("<end>", out);
  std::fflush(out);
  std::string text;
  pollfd ready{master, POLLIN, 0};
  while (!has(text, "<end>") && poll(&ready, 1, 5000) == 1) {
    char block[4096];
    const auto got = read(master, block, sizeof block);
    if (got <= 0) break;
    text.append(block, static_cast<std::size_t>(got));
  }
  REQUIRE(has(text, "<end>"));
  std::fclose(out);
  close(master);

  CHECK(has(text, "\r\x1b[Ksaved\r\n\r"));  // the old line goes, the text comes, and the line is drawn anew
  const auto lines = std::count(text.begin(), text.end(), '\n');
  CHECK(lines == 2);
  const std::string_view last = std::string_view(text).substr(text.rfind("saved\r\n") + 7);
  CHECK(has(std::string(last), "1,000/4,000"));
  // Not a draw for each of the thirty updates.
  CHECK(std::count(text.begin(), text.end(), '\x1b') < 15);
  for (std::size_t at = 0; (at = text.find('\r', at)) != std::string::npos; ++at) {
    const std::size_t end = text.find('\x1b', at);
    if (end == std::string::npos) break;
    const std::string_view drawn = std::string_view(text).substr(at + 1, end - at - 1);
    if (!has(std::string(drawn), "\n")) CHECK(display_width(drawn) < 60);
  }
}

TEST_CASE("control characters of a line are shown and not sent") {
  CHECK(written(false, 1, [](Progress& progress) { progress.line("a\x1b[31m\nb\r"); }) == "a\\x1B[31m\nb\\r\n");
}

TEST_CASE("after a stop signal nothing waits for a reader: what does not fit is dropped, what fits is written") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  const std::string part(4096, '.');
  while (write(ends[1], part.data(), part.size()) > 0) {
  }
  REQUIRE(fcntl(ends[1], F_SETFL, 0) == 0);
  const pid_t child = fork();  // where the signal is noted, and which an alarm ends if it waits
  if (child == 0) {
    alarm(30);
    const volatile int& noted = note_stop_signals();
    raise(SIGTERM);
    std::FILE* const out = fdopen(ends[1], "w");
    Progress full(out, false);
    full.line("not read");
    std::string rest(1 << 20, '\0');
    if (noted != SIGTERM || full.error() != EAGAIN || read(ends[0], rest.data(), rest.size()) <= 0) _exit(1);
    Progress empty(out, false);
    empty.line("read");
    if (empty.error() != 0 || read(ends[0], rest.data(), rest.size()) != 5) _exit(2);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  close(ends[0]);
  close(ends[1]);
}

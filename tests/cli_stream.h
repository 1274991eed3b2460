// weft translate with the trained model: all at once, or line by line through pipes.
#pragma once

#include <poll.h>

#include "cli.h"

namespace weft::cli {

/// The words that translate with the trained model.
inline Words translate(const Words& more = {}) { return Words{"translate", trained()} + more; }

/// Translates text that must go well, and gives the lines.
inline Words translated(const std::string& text, const Words& more = {}, const Words& variables = {}) {
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

}  // namespace weft::cli

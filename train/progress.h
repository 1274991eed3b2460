// What a training run says on the console: one live line on a terminal, plain lines anywhere else.
// A live line never exceeds the terminal's width and always ends before other text begins.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "weft/core/types.h"

namespace weft {

/// Where training stands.
struct ProgressState {
  Index step = 0, steps = 0;  ///< updates done, and all of them
  Index epoch = 0;
  double loss = 0;  ///< per target token, in nats
  double learning_rate = 0;
  double tokens_per_second = 0;  ///< target tokens
  double seconds_left = -1;      ///< negative if not known
};

/// Writes a state in one line of at most `width` columns, with a bar if there is room; what matters less goes
/// first.
std::string format_progress(const ProgressState& state, Index width);

/// Reports the progress of training on a stream.
///
/// On a terminal the line is redrawn in place, at most ten times a second. Elsewhere a line is printed for
/// each step that log_every divides, and for the last. `quiet` prints nothing at all. A stream that takes no more, full or
/// closed, is no reason to stop training: what comes then is dropped, and error() says so. Nor is one that nobody reads a reason
/// to wait once a stop signal was noted.
class Progress {
 public:
  /// out must have a descriptor, hold nothing unwritten, and outlive this object.
  Progress(std::FILE* out, bool quiet, Index log_every = 100);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Takes note of a new state and shows it if it is time to.
  void update(const ProgressState& state);

  /// Prints a whole line, or several; a live line stays below. Other control characters are shown as C spells them.
  void line(std::string_view text);

  /// Leaves the last state standing as an ordinary line. Does nothing the second time.
  void finish();

  /// The errno of the first line that could not be written; 0 if all could.
  int error() const { return error_; }

 private:
  void draw();
  void put(std::string_view text);

  std::FILE* const out_;
  const bool quiet_;
  const bool live_;
  const Index log_every_;
  ProgressState state_;
  int error_ = 0;
  bool drawn_ = false;  // a live line is on the screen and the cursor is in it
  std::chrono::steady_clock::time_point next_draw_;
};

}  // namespace weft

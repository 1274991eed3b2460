// How far the work on lines of text is: one live line on a terminal, erased at the end, and nothing anywhere else.
#pragma once

#include <cstdio>
#include <string>

#include "weft/core/types.h"

namespace weft {

/// Writes in at most `width` columns how many lines are translated, of `total` unless that is 0, and how fast.
std::string format_line_progress(Index lines, Index total, double seconds, Index width);

/// Shows the progress of a translation on a stream, drawn anew at most ten times a second.
class LineProgress {
 public:
  /// Shows nothing unless `wanted` and `out` is a terminal that can erase a line. `out` must outlive this object. `total` is
  /// 0 where nobody knows how many lines there are.
  LineProgress(std::FILE* out, bool wanted, Index total = 0);
  LineProgress(const LineProgress&) = delete;
  LineProgress& operator=(const LineProgress&) = delete;
  ~LineProgress() { clear(); }

  /// Takes note that so many more lines are translated.
  void add(Index lines);

  /// Erases the line until the next one is drawn: to be called before other text goes to the terminal.
  void clear();

 private:
  std::FILE* const out_;
  const bool live_;
  const Index total_;
  const double began_;
  double next_draw_ = 0;
  Index lines_ = 0;
  bool drawn_ = false;
};

}  // namespace weft

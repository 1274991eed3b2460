#include "weft/train/line_progress.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/core/clock.h"
#include "weft/train/terminal.h"
#include "weft/train/text_format.h"

namespace weft {

std::string format_line_progress(Index lines, Index total, double seconds, Index width) {
  std::string text = format_count(lines);
  if (total > 0) text += fmt::format("/{}", format_count(total));
  text += lines == 1 && total == 0 ? " line translated" : " lines translated";
  if (lines > 0 && seconds > 0) {
    const double speed = static_cast<double>(lines) / seconds;
    text += fmt::format("  {} lines/s", speed < 10 ? fmt::format("{:.1f}", speed) : format_count(std::llround(speed)));
    if (lines < total) text += fmt::format("  {} left", format_duration(static_cast<double>(total - lines) / speed));
  }
  return clip_text(text, width);
}

LineProgress::LineProgress(std::FILE* out, bool wanted, Index total)
    : out_(out), live_(wanted && can_redraw(out)), total_(total), began_(now()) {}

void LineProgress::add(Index lines) {
  lines_ += lines;
  const double time = now();
  if (!live_ || time < next_draw_) return;
  next_draw_ = time + 0.1;
  drawn_ = true;
  // The last column stays free: writing into it makes some terminals wrap.
  const Index width = terminal_width(out_) - 1;
  std::fputs(fmt::format("\r{}\x1b[K", format_line_progress(lines_, total_, time - began_, width)).c_str(), out_);
  std::fflush(out_);
}

void LineProgress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace weft

#include "weft/train/line_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "weft/core/clock.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

/// A terminal that can erase; a "dumb" one, like an editor's shell window, cannot.
bool is_live(std::FILE* out) {
  const char* const term = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

/// Columns of the terminal, asked anew for each line since windows change.
Index terminal_width(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

}  // namespace

std::string format_line_progress(Index lines, Index total, double seconds, Index width) {
  const double speed = seconds > 0 ? static_cast<double>(lines) / seconds : 0;
  std::string text = format_count(lines);
  if (total > 0) text += fmt::format("/{}", format_count(total));
  text += lines == 1 && total == 0 ? " line translated" : " lines translated";
  if (speed > 0)
    text += fmt::format("  {} lines/s", speed < 10 ? fmt::format("{:.1f}", speed) : format_count(std::llround(speed)));
  if (speed > 0 && lines < total)
    text += fmt::format("  {} left", format_duration(static_cast<double>(total - lines) / speed));
  return clip_text(text, width);
}

LineProgress::LineProgress(std::FILE* out, bool wanted, Index total)
    : out_(out), live_(wanted && is_live(out)), total_(total), began_(now()) {}

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

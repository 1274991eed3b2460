// The live line is drawn by returning to the line's start, writing, and erasing what is left of the old one.
#include "weft/train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/train/stop_signal.h"
#include "weft/train/terminal.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

constexpr Index kBarLeast = 8;
constexpr Index kBarMost = 40;
constexpr Index kPlainWidth = 1000;  // of a plain line: everything fits

std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{:.4f}", loss); }

std::string bar(double done, Index width) {
  const auto filled = static_cast<Index>(std::floor(done * static_cast<double>(width)));
  std::string text;
  for (Index i = 0; i < width; ++i) text += i < filled ? "━" : i == filled ? "╸" : "─";
  return text;
}

}  // namespace

std::string format_progress(const ProgressState& state, Index width) {
  struct Field {
    int rank;  // fields of the highest rank go first when room is short
    std::string text;
  };
  const std::string steps = format_count(state.steps);
  std::vector<Field> fields = {
      {0, fmt::format("{:>{}}/{}", format_count(state.step), steps.size(), steps)},
      {3, fmt::format("epoch {}", state.epoch)},
      {1, "loss " + loss_text(state.loss)},
      {4, "ppl " + format_perplexity(std::exp(state.loss), 2)},
      {6, fmt::format("lr {:.2e}", state.learning_rate)},
      {5, std::isfinite(state.tokens_per_second)
              ? fmt::format("{} tok/s", format_count(std::llround(state.tokens_per_second)))
              : "? tok/s"},
  };
  if (state.step < state.steps) fields.push_back({2, format_duration(state.seconds_left) + " left"});

  const auto join = [&] {
    std::string text;
    for (const Field& field : fields) text += (text.empty() ? "" : "  ") + field.text;
    return text;
  };
  std::string text = join();
  while (display_width(text) > width && fields.size() > 1) {
    fields.erase(
        std::max_element(fields.begin(), fields.end(), [](const Field& a, const Field& b) { return a.rank < b.rank; }));
    text = join();
  }
  const Index room = std::min(width - display_width(text) - 2, kBarMost);
  if (room < kBarLeast || width >= kPlainWidth) return clip_text(text, width);
  const double done = state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0;
  return bar(std::clamp(done, 0.0, 1.0), room) + "  " + text;
}

Progress::Progress(std::FILE* out, bool quiet, Index log_every)
    : out_(out), quiet_(quiet), live_(!quiet && can_redraw(out)), log_every_(std::max<Index>(1, log_every)) {}

void Progress::update(const ProgressState& state) {
  state_ = state;
  if (quiet_) return;
  const bool last = state.step >= state.steps;
  if (live_) {
    if (!last && drawn_ && std::chrono::steady_clock::now() < next_draw_) return;
    draw();
  } else if (last || state.step % log_every_ == 0) {
    line("step " + format_progress(state, kPlainWidth));
  }
}

void Progress::line(std::string_view text) {
  if (quiet_) return;
  put(fmt::format("{}{}\n", drawn_ ? "\r\x1b[K" : "", show_controls(text, true)));
  if (drawn_) draw();
}

void Progress::finish() {
  if (!drawn_) return;
  draw();  // the last state may have come too soon after the one before
  put("\n");
  drawn_ = false;
}

void Progress::draw() {
  // The last column stays free: writing into it makes some terminals wrap.
  const std::string text = format_progress(state_, terminal_width(out_) - 1);
  put(fmt::format("\r{}\x1b[K", text));
  drawn_ = true;
  next_draw_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
}

void Progress::put(std::string_view text) {
  if (error_ == 0) error_ = write_unless_stopped(::fileno(out_), text);
}

}  // namespace weft

// Text for people: no locale has a say, so that the same numbers give the same text everywhere.
#include "weft/train/text_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr CodePointRange kZeroWidth[] = {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x2060, 0x2064}, {0x20D0, 0x20FF},
                                         {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
constexpr CodePointRange kDoubleWidth[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xAC00, 0xD7A3},
                                           {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6},
                                           {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

Index width_of(char32_t c) { return in_ranges(kZeroWidth, c) ? 0 : in_ranges(kDoubleWidth, c) ? 2 : 1; }

}  // namespace

std::string format_count(Index n) {
  std::string text = fmt::format("{}", n);
  const std::size_t first = n < 0 ? 2 : 1;  // no comma before the first digit
  for (std::size_t at = text.size(); at > first + 2; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string format_bytes(Index bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; value >= 1023.95; value /= 1024) ++unit;  // would print as 1024.0
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e15) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<Index>(std::round(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  const Index minutes = (s + 30) / 60;
  if (minutes < 24 * 60) return fmt::format("{}h {:02}m", minutes / 60, minutes % 60);
  const Index hours = (s + 1800) / 3600;
  return fmt::format("{}d {:02}h", hours / 24, hours % 24);
}

std::string format_perplexity(double perplexity, int decimals) {
  if (std::isnan(perplexity)) return "nan";  // never "-nan", which x86 makes of 0/0
  return perplexity < 1e6 ? fmt::format("{:.{}f}", perplexity, decimals) : fmt::format("{:.3g}", perplexity);
}

std::string show_controls(std::string_view text, bool keep_line_feeds) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const char32_t c = point.value;
    if (c == U'\n' && !keep_line_feeds) {
      shown += "\\n";
    } else if (c == U'\r') {
      shown += "\\r";
    } else if (c == U'\t') {
      shown += "\\t";
    } else if ((c < 0x20 && c != U'\n') || (c >= 0x7F && c < 0xA0)) {
      shown += fmt::format("\\x{:02X}", static_cast<std::uint32_t>(c));
    } else if (c == 0x2028 || c == 0x2029) {  // which part lines too
      shown += fmt::format("\\u{:04X}", static_cast<std::uint32_t>(c));
    } else {
      shown += text.substr(at, point.length);
    }
    at += point.length;
  }
  return shown;
}

char32_t take_code_point(std::string_view& text) {
  const CodePoint point = code_point_at(text, 0);
  text.remove_prefix(point.length);
  return point.value == kInvalidCodePoint ? U'\uFFFD' : point.value;
}

Index display_width(std::string_view text) {
  Index width = 0;
  while (!text.empty()) width += width_of(take_code_point(text));
  return width;
}

std::string clip_text(std::string_view text, Index width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::string_view rest = text;
  for (Index used = 0; !rest.empty();) {
    std::string_view after = rest;
    used += width_of(take_code_point(after));
    if (used > width - 1) break;
    rest = after;
  }
  return std::string(text.substr(0, text.size() - rest.size())) + "…";
}

std::string format_table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<Index> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(static_cast<std::size_t>(widths[c] - display_width(row[c])), ' ');
      const bool right = c < alignment.size() && alignment[c] == 'r';
      line.append(c == 0 ? "" : "  ").append(right ? space + row[c] : row[c] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return table;
}

}  // namespace weft

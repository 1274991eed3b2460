// Unicode data comes from utf8proc.
#include "weft/data/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace weft {
namespace {

utf8proc_category_t category(char32_t value) {
  if (value == kInvalidCodePoint) return UTF8PROC_CATEGORY_SO;
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool is_ascii(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]) < 0x80; }

int combining_class(utf8proc_int32_t point) { return utf8proc_get_property(point)->combining_class; }

/// Sorts each run of combining marks by their class; utf8proc does the same in a time with the square of the run.
void sort_marks(std::vector<utf8proc_int32_t>& points) {
  for (auto at = points.begin(); at != points.end();) {
    const auto end = std::find_if(at, points.end(), [](utf8proc_int32_t point) { return combining_class(point) == 0; });
    std::stable_sort(at, end,
                     [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
    at = end == points.end() ? end : end + 1;
  }
}

/// The text in full case folding and NFC; nothing if it is not UTF-8.
std::optional<std::string> composed_fold(std::string_view text) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_CASEFOLD | UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  std::array<utf8proc_int32_t, 32> made;  // of one code point, which makes four at most
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == kInvalidCodePoint) return std::nullopt;
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point.value), made.data(), made.size(),
                                               kOptions, &boundary);
    if (count < 0) return std::nullopt;
    points.insert(points.end(), made.begin(), made.begin() + count);
    at += point.length;
  }
  sort_marks(points);
  const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kOptions);
  std::string folded;
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_code_point(folded, static_cast<char32_t>(points[static_cast<std::size_t>(i)]));
  }
  return folded;
}

}  // namespace

bool in_ranges(std::span<const CodePointRange> ranges, char32_t value) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [value](CodePointRange range) { return value >= range.first && value <= range.last; });
}

CodePoint code_point_at(std::string_view text, std::size_t at) {
  if (is_ascii(text, at)) return {static_cast<char32_t>(text[at]), 1};
  utf8proc_int32_t value = -1;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &value);
  if (length <= 0) return {kInvalidCodePoint, 1};
  return {static_cast<char32_t>(value), static_cast<std::size_t>(length)};
}

void append_code_point(std::string& text, char32_t value) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

bool is_space(char32_t value) {
  if (value < 0x80) return value == U' ' || (value >= U'\t' && value <= U'\r');
  if (value == 0x85) return true;
  const auto kind = category(value);
  return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool is_invisible(char32_t value) { return is_space(value) || category(value) == UTF8PROC_CATEGORY_CF; }

bool is_symbol(char32_t value) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
    case UTF8PROC_CATEGORY_CC:
      return true;
    default:
      return false;
  }
}

bool is_letter(char32_t value) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_number(char32_t value) {
  const auto kind = category(value);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

char32_t to_lower(char32_t value) {
  if (value == kInvalidCodePoint) return value;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
}

std::string fold_text(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  bool space = false, ascii = true;
  for (std::size_t at = 0; at < line.size();) {
    const CodePoint point = code_point_at(line, at);
    if (is_space(point.value)) {
      space = !text.empty();
    } else {
      if (space) text += ' ';
      space = false;
      ascii = ascii && point.value < 0x80;
      text += line.substr(at, point.length);
    }
    at += point.length;
  }
  if (ascii) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  }
  return composed_fold(text).value_or(text);
}

std::size_t cluster_end(std::string_view text, std::size_t at) {
  CodePoint last = code_point_at(text, at);
  std::size_t end = at + last.length;
  utf8proc_int32_t state = 0;
  while (end < text.size() && last.value != kInvalidCodePoint) {
    if (last.value < 0x80 && is_ascii(text, end)) break;  // so between all ASCII but CR LF, which are spaces here
    const CodePoint next = code_point_at(text, end);
    if (next.value == kInvalidCodePoint ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    end += next.length;
    last = next;
  }
  return end;
}

bool is_blank(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    const CodePoint point = code_point_at(line, at);
    if (!is_invisible(point.value)) return false;
    at += point.length;
  }
  return true;
}

}  // namespace weft

#include "weft/data/text_check.h"

#include <fmt/format.h>

#include <array>
#include <istream>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/data/text_stream.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

struct Words {
  std::string_view name, meaning;
};
constexpr std::array<Words, kOddities> kWords = {{
    {"unreadable", "files that cannot be read"},
    {"invalid_utf8", "lines that are not UTF-8"},
    {"nul", "lines with a NUL byte"},
    {"unequal_lines", "pairs of files with unequal numbers of lines"},
    {"no_text", "sides without any text"},
    {"byte_order_mark", "files that begin with a byte order mark, which is dropped"},
    {"inner_byte_order_mark", "lines with a byte order mark (U+FEFF) inside, which stays"},
    {"carriage_returns", "lines that end in CR LF, whose CR is dropped"},
    {"line_separators", "lines with a lone CR, VT, FF, U+0085, U+2028 or U+2029 inside, which counts as a space"},
    {"control_characters", "lines with other control characters"},
    {"surplus_blank_lines", "blank lines at the end of the longer file, which are left out"},
    {"too_few_columns", "lines with too few columns, which are skipped"},
    {"surplus_columns", "lines with more columns than are used"},
    {"both_blank", "pairs blank on both sides"},
    {"source_blank", "pairs blank on the source side alone"},
    {"target_blank", "pairs blank on the target side alone"},
    {"too_long", "pairs with a side that is too long"},
    {"uneven_lengths", "pairs with one side more than 3 times as long as the other, and 10 tokens at least"},
    {"unknown_tokens", "pairs with tokens that the vocabulary lacks"},
    {"equal_sides", "pairs with the same text on both sides, but for case and spaces"},
    {"duplicates", "pairs that were there before, but for case and spaces"},
    {"pair_in_training", "pairs that are in the training text, but for case and spaces"},
    {"source_in_training", "pairs whose source is in the training text, but for case and spaces"},
    {"target_in_training", "pairs whose target is in the training text, but for case and spaces"},
}};

/// What is wrong with the byte at `at`, which begins no valid code point. Forms as in table 3-7 of the Unicode Standard.
std::string invalid_form(std::string_view line, std::size_t at) {
  const auto byte = static_cast<unsigned char>(line[at]);
  const unsigned next = at + 1 < line.size() ? static_cast<unsigned char>(line[at + 1]) : 0;
  const bool continued = (next & 0xC0) == 0x80;
  const char* form = "a sequence that is cut";
  if (byte < 0xC0) {
    form = "in no sequence";
  } else if (byte < 0xC2 || (byte == 0xE0 && continued && next < 0xA0) || (byte == 0xF0 && continued && next < 0x90)) {
    form = "an overlong form";
  } else if (byte == 0xED && continued && next >= 0xA0) {
    form = "a surrogate";
  } else if ((byte == 0xF4 && continued && next >= 0x90) || (byte > 0xF4 && byte < 0xF8)) {
    form = "above U+10FFFF";
  } else if (byte >= 0xF8) {
    form = "never in UTF-8";
  }
  return fmt::format("byte 0x{:02X}, {}", byte, form);
}

/// What a code point is evidence of.
std::optional<Oddity> oddity_of(char32_t value) {
  if (value == 0) return Oddity::kNul;
  if (value == kInvalidCodePoint) return Oddity::kInvalidUtf8;
  if (value == 0xFEFF) return Oddity::kInnerByteOrderMark;
  if (value == U'\r' || value == U'\v' || value == U'\f' || value == 0x85 || value == 0x2028 || value == 0x2029) {
    return Oddity::kLineSeparators;
  }
  if ((value < 0x20 && value != U'\t') || (value >= 0x7F && value < 0xA0)) return Oddity::kControlCharacters;
  return std::nullopt;
}

/// Notes each kind once a line, at its first byte.
void check_line(std::string_view line, const std::string& name, Index number, Findings& findings) {
  std::array<bool, kOddities> noted{};
  for (std::size_t at = 0; at < line.size();) {
    const CodePoint point = code_point_at(line, at);
    if (const auto oddity = oddity_of(point.value);
        oddity && !std::exchange(noted[static_cast<std::size_t>(*oddity)], true)) {
      std::string note;
      if (*oddity == Oddity::kInvalidUtf8) note = invalid_form(line, at);
      if (*oddity == Oddity::kLineSeparators || *oddity == Oddity::kControlCharacters) {
        note = fmt::format("U+{:04X}", static_cast<std::uint32_t>(point.value));
      }
      findings.add(*oddity, name, number, static_cast<Index>(at) + 1, note);
    }
    at += point.length;
  }
}

}  // namespace

std::string_view name_of(Oddity oddity) { return kWords[static_cast<std::size_t>(oddity)].name; }
std::string_view meaning_of(Oddity oddity) { return kWords[static_cast<std::size_t>(oddity)].meaning; }

std::string Place::text() const {
  std::string text = file;
  if (line > 0) text += fmt::format(":{}", line);
  if (column > 0) text += fmt::format(":{}", column);
  if (!note.empty()) text += fmt::format(" ({})", note);
  return text;
}

void Findings::add(Oddity oddity, const std::string& file, Index line, Index column, std::string_view note) {
  Finding& finding = all_[static_cast<std::size_t>(oddity)];
  ++finding.count;
  if (finding.first.size() < limit_) finding.first.push_back({file, line, column, std::string(note)});
}

std::optional<Index> check_file(const std::string& name, Findings& findings) {
  try {
    const auto in = open_text(name);
    LineReader reader(*in, name);
    std::string line;
    while (reader.next(line)) {
      if (reader.byte_order_mark()) findings.add(Oddity::kByteOrderMark, name, reader.line_number());
      if (reader.carriage_return()) findings.add(Oddity::kCarriageReturns, name, reader.line_number());
      check_line(line, name, reader.line_number(), findings);
    }
    return reader.line_number();
  } catch (const DataError& error) {
    std::string_view what = error.what();
    if (const std::string prefix = fmt::format("{}: ", name); what.starts_with(prefix))
      what.remove_prefix(prefix.size());
    findings.add(Oddity::kUnreadable, name, 0, 0, what);
    return std::nullopt;
  }
}

}  // namespace weft

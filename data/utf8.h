// Code points of UTF-8 text and the few character classes that text handling needs. Decoding never fails and
// never skips: a byte that is not UTF-8 counts as an invalid code point of length 1, so any bytes can be
// walked and copied.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// The value of a byte that does not belong to valid UTF-8.
inline constexpr char32_t kInvalidCodePoint = 0xFFFFFFFF;

/// One code point and the number of bytes it takes.
struct CodePoint {
  char32_t value;
  std::size_t length;
};

/// Code points from `first` to `last`.
struct CodePointRange {
  char32_t first, last;
};

/// Whether a code point is in one of the ranges.
bool in_ranges(std::span<const CodePointRange> ranges, char32_t value);

/// Decodes the code point that begins at byte `at` < text.size(). Cut, overlong and surrogate forms and those
/// above U+10FFFF are invalid.
CodePoint code_point_at(std::string_view text, std::size_t at);

/// Appends a valid code point as UTF-8.
void append_code_point(std::string& text, char32_t value);

/// Whether a code point has Unicode's White_Space property: tabs, line breaks, no-break and other spaces.
bool is_space(char32_t value);

/// Whether a code point shows nothing: a space or a format character (zero width, soft hyphen, byte order
/// mark).
bool is_invisible(char32_t value);

/// Whether a code point is punctuation, a symbol, a control character or invalid: what is not part of a word.
bool is_symbol(char32_t value);

/// Whether a code point is a letter.
bool is_letter(char32_t value);

/// Whether a code point is a digit or another number.
bool is_number(char32_t value);

/// The lower-case form of a code point by Unicode's simple (one to one) mapping; itself if it has none.
char32_t to_lower(char32_t value);

/// A line as two sentences are compared that are the same to a reader: in Unicode's full case folding and composed form
/// (NFC), with each run of spaces of any kind as one space and none at the ends. A line that is not UTF-8 keeps its case.
std::string fold_text(std::string_view line);

/// The end of the user-perceived character (extended grapheme cluster) that begins at byte `at` <
/// text.size(): a letter with its combining marks, an emoji sequence.
std::size_t cluster_end(std::string_view text, std::size_t at);

/// Whether a line holds nothing to read: empty, or only spaces of any kind and zero-width characters.
bool is_blank(std::string_view line);

}  // namespace weft

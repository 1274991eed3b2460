// Numbers, durations and tables as people read them on a terminal, and how wide text is there.
// Text may be any bytes: what is not UTF-8 counts and shows as U+FFFD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// Writes a count with commas: "1,234,567".
std::string format_count(Index n);

/// Writes a size in binary units: "512 B", "12.3 MiB".
std::string format_bytes(Index bytes);

/// Writes a time in its two largest units: "4.2s", "42s", "1m 23s", "2h 05m", "3d 04h"; "?" if it is not
/// known (negative or not finite).
std::string format_duration(double seconds);

/// Writes a perplexity with so many decimals, from a million on with three digits and an exponent; "nan", "inf".
std::string format_perplexity(double perplexity, int decimals = 3);

/// Shows the control characters of a text and those that part lines as C spells them: "\n", "\x1B". Bytes that are not
/// UTF-8 stay, and so do line feeds if asked for.
std::string show_controls(std::string_view text, bool keep_line_feeds = false);

/// Whether a text has any of these characters.
inline bool has_controls(std::string_view text) { return show_controls(text) != text; }

/// Takes the first code point off `text`, which must not be empty; U+FFFD for a byte that is not UTF-8.
char32_t take_code_point(std::string_view& text);

/// Returns the columns that text takes on a terminal: 0 for combining marks, 2 for East Asian and emoji,
/// else 1.
Index display_width(std::string_view text);

/// Cuts text to at most `width` columns, the last of them "…" if something is missing.
std::string clip_text(std::string_view text, Index width);

/// Lays out rows as a table of aligned columns, two spaces apart, one line a row.
///
/// alignment holds 'l' or 'r' for each column; columns beyond it go left. Rows may differ in length.
std::string format_table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment = {});

}  // namespace weft

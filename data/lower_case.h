// Lower-casing of whole texts by Unicode's full rules, where one letter may become two and a sigma depends on
// its neighbours: what Python's str.lower() does, so that lower-cased scores equal those of other programs.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// Puts a text into lower case by the rules that hold for every language.
///
/// These are the one to one mappings, U+0130 (I with dot) as i and a combining dot, and U+03A3 (sigma) as its
/// final form after a cased letter and not before one. The mappings are those of the Unicode version of the
/// utf8proc at hand; letters that are newer stay as they are. Bytes that are not UTF-8 stay too. Source: The
/// Unicode Standard, section 3.13, definition D135 to rule R2 and SpecialCasing.txt.
std::string lower_case(std::string_view text);

}  // namespace weft

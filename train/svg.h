// What the pictures share: their colours and margin, and text in XML.
#pragma once

#include <string>
#include <string_view>

namespace weft {

namespace svg {
inline constexpr std::string_view kPaper = "#fcfbf8", kInk = "#1d2733", kSoftInk = "#6b7684", kLine = "#e3e0d8";
inline constexpr double kMargin = 28;  ///< round a picture, in pixels
}  // namespace svg

/// Escapes text for XML content and attributes. Control characters, which XML forbids, show as their Unicode pictures.
std::string escape_xml(std::string_view text);

}  // namespace weft

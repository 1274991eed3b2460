#include "weft/train/svg.h"

#include <fmt/format.h>

#include "weft/train/text_format.h"

namespace weft {

std::string escape_xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = take_code_point(text);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c < 0x20) {
      out += fmt::format("&#x{:X};", 0x2400 + static_cast<unsigned>(c));
    } else if (c == 0x7F) {
      out += "&#x2421;";
    } else if (c == 0xFFFD || c == 0xFFFE || c == 0xFFFF) {
      out += "&#xFFFD;";
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

}  // namespace weft

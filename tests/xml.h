// What the tests of pictures ask of XML.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace xml {

/// How often `what` stands in `text`.
inline std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

/// Says what keeps a document from being well-formed XML of the plain sort drawn here; empty if nothing does.
inline std::string fault(std::string_view xml) {
  std::vector<std::string> open;
  bool root_closed = false;
  const auto text_fault = [](std::string_view text) -> std::string {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c < 0x20 && c != '\n') return "control character";
      if (c == '<' || c == '>') return "bare angle bracket";
      if (c == '&' && text.substr(i, 12).find(';') == std::string_view::npos) return "bare ampersand";
    }
    return "";
  };
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] != '<') {
      const std::size_t end = std::min(xml.find('<', at), xml.size());
      const std::string bad = text_fault(xml.substr(at, end - at));
      if (!bad.empty()) return bad;
      at = end;
      continue;
    }
    std::size_t end = at + 1;  // the tag's own end: outside of quotes
    std::string attributes;
    for (bool quoted = false; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (quoted) attributes += xml[end];
    }
    if (end >= xml.size()) return "tag without end";
    const std::string bad = text_fault(attributes);
    if (!bad.empty()) return "attribute: " + bad;
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.front() == '?') continue;
    if (root_closed) return "second root";
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unbalanced " + std::string(tag);
      open.pop_back();
      root_closed = open.empty();
    } else if (tag.back() != '/') {
      open.push_back(std::string(tag.substr(0, tag.find(' '))));
    }
  }
  return open.empty() ? "" : "open " + open.back();
}

}  // namespace xml

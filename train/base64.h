// Base64 (RFC 4648, section 4), for bytes that must stand in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// Writes bytes as base64, without line breaks.
std::string to_base64(std::string_view bytes);

/// Reads what to_base64 writes; nothing for any other text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace weft

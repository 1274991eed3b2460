#include "weft/train/base64.h"

#include <algorithm>
#include <cstdint>

namespace weft {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      word = word << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t word = 0;
    std::size_t digits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t digit = kDigits.find(text[at + i]);
      if (digit != kDigits.npos && digits == i) {
        word |= static_cast<std::uint32_t>(digit) << (18 - 6 * i);
        ++digits;
      } else if (text[at + i] != '=' || i < 2 || at + 4 != text.size()) {
        return std::nullopt;
      }
    }
    for (std::size_t i = 0; i + 1 < digits; ++i) bytes += static_cast<char>(word >> (16 - 8 * i) & 0xFF);
  }
  if (to_base64(bytes) != text) return std::nullopt;  // digits whose last bits say nothing
  return bytes;
}

}  // namespace weft

// JSON texts of values, made without objects of the JSON library: destroying an array or an object of that takes memory, so
// where a checkpoint or a log is written a lack of memory would end the process instead of being an exception.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The shortest digits that read back as the same number, whatever the locale; null for what is not finite.
std::string json_number(double value);

/// An array of strings, which must be UTF-8.
std::string json_strings(const std::vector<std::string>& texts);

/// Reads an array of strings, `most` at most; nothing if the text is anything else. What is kept is the strings, however the
/// text nests.
std::optional<std::vector<std::string>> read_json_strings(std::string_view json, std::size_t most);

}  // namespace weft

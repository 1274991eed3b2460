// Lists of texts in JSON, read without making more of them than they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Reads a JSON array of strings; nothing if the text is anything else. What is kept is the strings, however the text nests.
std::optional<std::vector<std::string>> read_json_texts(std::string_view json);

}  // namespace weft

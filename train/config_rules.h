// One value against its row of the table, in words: what is allowed, what is wrong, what was probably meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/train/config_reader.h"
#include "weft/train/config_table.h"

namespace weft {

/// Writes a value as JSON in one line; a number in the fewest digits that give it back. Throws
/// ConfigError for text that is not UTF-8.
std::string show_value(const ConfigValue& value);

/// Gives the value that the key has in Config{}.
ConfigValue default_of(const ConfigKey& key);

/// Writes words as a choice: "a", "b" or "c".
std::string choice(const std::vector<std::string>& words);

/// Says what a rule allows, as "at least 0 and below 1" or the list of strings; empty if it allows
/// everything.
std::string allowed(const ConfigRule& rule);

/// Gives what was found in the key's type, whatever its size; nothing if it has another type. For lists of texts see
/// read_text_list.
std::optional<ConfigValue> converted(const ConfigKey& key, const FoundValue& found);

/// Says what the key demands and the found value does not give, to go after "must be"; empty if the value
/// will do.
std::string broken_rule(const ConfigKey& key, const FoundValue& found);

/// Says that the table has no such path, and which key was probably meant.
std::string unknown_key(const std::string& path);

}  // namespace weft

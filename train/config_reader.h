// Reads the JSON text of a configuration into a flat list of entries, in file order, with the line of each.
// Knows JSON and the two levels (sections and their keys); knows nothing of which keys there are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// A value as it stands in the text. Whole numbers beyond Index are doubles.
struct FoundValue {
  std::variant<std::monostate, bool, Index, double, std::string> value;  ///< monostate: null, an array, an object
  std::string shown;                                                     ///< as JSON, or "an array", "an object"
  bool is_object = false;
  bool is_array = false;
  std::string name = {};  ///< of a member of an object that is itself a member
  /// What an array or an object inside a section holds, in the order of the text; two levels deep, no deeper.
  std::vector<FoundValue> members = {};
};

/// A member of the outermost object (no name), or of a section. A section is itself an entry, before its
/// keys.
struct ConfigEntry {
  std::string section;
  std::optional<std::string> name;
  FoundValue found;
  Index line = 0;

  std::string path() const { return name ? section + "." + *name : section; }
};

/// The longest file of a configuration, in bytes.
inline constexpr std::size_t kMostConfigFileBytes = std::size_t{1} << 20;

/// The longest text of a configuration, the most values in it, and how deep they may be nested. A resolved configuration is
/// longer than its file: it has room for that.
inline constexpr std::size_t kMostConfigBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMostConfigValues = 200'000;
inline constexpr std::size_t kDeepestConfig = 16;

/// Reads a JSON object, with comments and a byte order mark allowed. Objects and arrays inside a section are
/// entries with members. Throws ConfigError `name:line:column: ...` where the text is not JSON, and for a text beyond the
/// limits above.
std::vector<ConfigEntry> read_config_entries(std::string_view text, std::string_view name);

/// Reads a single JSON value; nothing if the text is not JSON, or beyond the limits.
std::optional<FoundValue> read_json_value(std::string_view text);

/// Cuts a text that stands in an error after some 400 bytes, between two characters.
std::string shortened(std::string text);

/// Writes text as a JSON string, quoted and escaped; nothing if it is not UTF-8.
std::optional<std::string> json_string(const std::string& text);

}  // namespace weft

// The one table of configuration keys, which drives parsing, validation, `config show` and `config docs`, and
// the checks that concern several keys. The defaults are those of the structs in config.h, and satisfy every
// rule.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/train/config.h"

namespace weft {

/// The value of a key, in one of the five types that keys have.
using ConfigValue = std::variant<bool, Index, double, std::string, std::vector<TextFiles>>;

/// Says that a key matters only if another key has one of some values; setting it otherwise is an error.
struct ConfigUse {
  std::string key = {};
  std::vector<std::string> values = {};
};

/// What a key may be, apart from its type. Whole numbers without `at_most` are at most kLargestInteger.
struct ConfigRule {
  std::optional<double> at_least = {};
  std::optional<double> above = {};
  std::optional<double> at_most = {};
  std::optional<double> below = {};
  std::vector<std::string> one_of = {};
  ConfigUse only_with = {};
};

/// Small enough that the product of two such numbers is an Index.
inline constexpr Index kLargestInteger = 1'000'000'000;

/// A row of the table.
struct ConfigKey {
  std::string section;
  std::string name;
  std::string path;  // section.name
  ConfigRule rule;
  std::string meaning;
  std::function<ConfigValue(const Config&)> get;
  std::function<void(Config&, const ConfigValue&)> set;  // the value has the type that `get` returns
};

/// A group of keys: an object in the JSON file.
struct ConfigSection {
  std::string name;
  std::string meaning;
};

/// A rule about several keys. `problem` returns what is wrong, or an empty string.
struct ConfigCheck {
  std::vector<std::string> keys;
  std::function<std::string(const Config&)> problem;
};

struct ConfigTable {
  std::vector<ConfigSection> sections;
  std::vector<ConfigKey> keys;  // in the order of their sections
  std::vector<ConfigCheck> checks;

  /// The row of "section.name", or null.
  const ConfigKey* find(std::string_view path) const;
  bool has_section(std::string_view name) const;
};

/// The rules of the table about several keys (config_checks.cpp).
std::vector<ConfigCheck> config_checks();

/// The table, made once.
const ConfigTable& config_table();

}  // namespace weft

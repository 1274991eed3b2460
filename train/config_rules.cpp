#include "weft/train/config_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/train/config_texts.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

const char* type_name(const ConfigKey& key) {
  constexpr const char* kNames[] = {"true or false", "a whole number", "a number", "a string", kTextListRule};
  return kNames[default_of(key).index()];
}

std::string broken_text_rule(const ConfigRule& rule, const std::string& text) {
  if (has_controls(text)) return "without control characters";
  if (rule.one_of.empty() || std::count(rule.one_of.begin(), rule.one_of.end(), text) > 0) return "";
  return allowed(rule) + suggestion(text, rule.one_of);
}

}  // namespace

std::string show_value(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (const auto shown = json_string(*text)) return *shown;
    throw ConfigError(fmt::format("a configuration's text is not UTF-8: {}", *text));
  }
  if (const auto* texts = std::get_if<std::vector<TextFiles>>(&value)) return show_text_list(*texts);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<Index>(&value)) return fmt::to_string(*whole);
  return fmt::format("{}", std::get<double>(value));
}

ConfigValue default_of(const ConfigKey& key) { return key.get(Config{}); }

std::string choice(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
  return text;
}

std::string allowed(const ConfigRule& rule) {
  if (!rule.one_of.empty()) return "one of " + choice(rule.one_of);
  std::vector<std::string> parts;
  if (rule.at_least) parts.push_back(fmt::format("at least {}", *rule.at_least));
  if (rule.above) parts.push_back(fmt::format("above {}", *rule.above));
  if (rule.at_most) parts.push_back(fmt::format("at most {}", *rule.at_most));
  if (rule.below) parts.push_back(fmt::format("below {}", *rule.below));
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::optional<ConfigValue> converted(const ConfigKey& key, const FoundValue& found) {
  const ConfigValue wanted = default_of(key);
  const auto* whole = std::get_if<Index>(&found.value);
  const auto* number = std::get_if<double>(&found.value);
  if (std::holds_alternative<double>(wanted)) {
    if (whole) return static_cast<double>(*whole);
    if (number) return *number + 0.0;  // -0 becomes 0, so that it is written as it will be read
  } else if (std::holds_alternative<Index>(wanted)) {
    if (whole) return *whole;
    constexpr double kBeyond = 1e18;  // an Index still, and more than any rule allows
    if (number && std::trunc(*number) == *number) return static_cast<Index>(std::clamp(*number, -kBeyond, kBeyond));
  } else if (std::holds_alternative<bool>(wanted)) {
    if (const auto* flag = std::get_if<bool>(&found.value)) return *flag;
  } else if (const auto* text = std::get_if<std::string>(&found.value)) {
    return *text;
  }
  return std::nullopt;
}

std::string broken_rule(const ConfigKey& key, const FoundValue& found) {
  const ConfigRule& rule = key.rule;
  const auto value = converted(key, found);
  if (!value) return fmt::format("{}{}{}", type_name(key), allowed(rule).empty() ? "" : ", ", allowed(rule));
  if (std::holds_alternative<bool>(*value)) return "";
  if (const auto* text = std::get_if<std::string>(&*value)) return broken_text_rule(rule, *text);
  const auto* whole = std::get_if<Index>(&*value);
  const double number = whole ? static_cast<double>(*whole) : std::get<double>(*value);
  if (whole && !rule.at_most && *whole > kLargestInteger) return fmt::format("at most {}", kLargestInteger);
  const bool fits = (!rule.at_least || number >= *rule.at_least) && (!rule.above || number > *rule.above) &&
                    (!rule.at_most || number <= *rule.at_most) && (!rule.below || number < *rule.below);
  return fits ? "" : allowed(rule);
}

std::string unknown_key(const std::string& path) {
  const ConfigTable& table = config_table();
  const auto dot = path.find('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
  const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
  if (table.has_section(path)) return path + " is a section; name one of its keys";

  constexpr std::size_t kLongest = 64;  // beyond which no key was meant, and comparing takes long
  Nearest nearest(name);
  if (path.size() <= kLongest) {
    for (const ConfigKey& key : table.keys)  // a wrong section costs no more than two wrong letters
      nearest.offer(key.path,
                    edit_distance(name, key.name) + std::min<std::size_t>(edit_distance(section, key.section), 2));
    if (section.empty())
      for (const ConfigSection& known : table.sections) nearest.offer(known.name, edit_distance(name, known.name));
  }
  const std::string text = path + " is not a known key; ";
  if (!nearest.word().empty()) return text + "did you mean " + nearest.word() + "?";

  std::vector<std::string> known;
  for (const ConfigKey& key : table.keys)
    if (key.section == section) known.push_back(key.name);
  if (!known.empty()) return fmt::format("{}{} has {}", text, section, fmt::join(known, ", "));
  for (const ConfigSection& s : table.sections) known.push_back(s.name);
  return fmt::format("{}the sections are {}", text, fmt::join(known, ", "));
}

}  // namespace weft

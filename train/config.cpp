#include "weft/train/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/data/text_stream.h"
#include "weft/train/config_reader.h"
#include "weft/train/config_rules.h"
#include "weft/train/config_table.h"
#include "weft/train/config_texts.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

/// Fills a Config and collects every problem on the way. `where` begins a problem's line: file and line, or
/// an override.
class Loader {
 public:
  explicit Loader(std::string_view name) : name_(name) {}

  void read(std::string_view json) {
    std::map<std::string, Index> seen;
    for (const ConfigEntry& entry : read_config_entries(json, name_)) {
      const std::string where = fmt::format("{}:{}", name_, entry.line);
      const std::string path = entry.path();
      const auto [first, fresh] = seen.emplace(path, entry.line);
      if (!fresh) problem(where, fmt::format("{} is given twice, first in line {}", path, first->second));
      if (entry.name) {
        if (config_table().has_section(entry.section)) set(where, path, entry.found);
      } else if (const ConfigKey* key = config_table().find(path)) {
        problem(where, fmt::format("{} must be written inside its section: \"{}\": {{\"{}\": ...}}", path, key->section,
                                   key->name));
      } else if (!config_table().has_section(path)) {
        problem(where, unknown_key(path));
      } else if (!entry.found.is_object) {
        problem(where, fmt::format("{} is {}; must be an object: {{ ... }}", path, entry.found.shown));
      }
    }
  }

  void apply(const std::string& override_text) {
    const std::string where = "--set " + show_controls(override_text);
    const auto equals = override_text.find('=');
    if (equals == std::string::npos) return problem(where, "must have the form KEY=VALUE");
    const std::string path = override_text.substr(0, equals), text = override_text.substr(equals + 1);
    const auto shown = json_string(text);
    if (!shown) return problem(where, "the value is not UTF-8");
    FoundValue found{text, *shown};
    const ConfigKey* key = config_table().find(path);
    if (auto parsed = read_json_value(text); parsed && key && (!is_text(*key) || converted(*key, *parsed)))
      found = std::move(*parsed);
    if (set(where, path, found)) override_of_[path] = where;
  }

  /// Runs the checks of several keys, and gives the config or throws all problems.
  Config finish() {
    for (const ConfigKey& key : config_table().keys) check_use(key);
    for (const ConfigCheck& check : config_table().checks)
      if (sound(check.keys)) cross_problem(check.keys, check.problem(config_));
    if (!problems_.empty()) throw ConfigError(fmt::format("{}", fmt::join(problems_, "\n")));
    return config_;
  }

 private:
  static bool is_text(const ConfigKey& key) { return std::holds_alternative<std::string>(default_of(key)); }

  /// Notes a problem; when there are very many, throws them without looking for more.
  void problem(const std::string& where, const std::string& what) {
    constexpr std::size_t kMost = 50;
    problems_.push_back(shortened(where + ": " + what));
    if (problems_.size() < kMost) return;
    problems_.push_back(name_ + ": perhaps more; mend these first");
    throw ConfigError(fmt::format("{}", fmt::join(problems_, "\n")));
  }

  bool set(const std::string& where, const std::string& path, const FoundValue& found) {
    const ConfigKey* key = config_table().find(path);
    if (key == nullptr) {
      problem(where, unknown_key(path));
      return false;
    }
    if (std::holds_alternative<std::vector<TextFiles>>(default_of(*key))) return set_texts(where, *key, found);
    if (const std::string rule = broken_rule(*key, found); !rule.empty()) {
      problem(where, fmt::format("{} is {}; must be {}", path, found.shown, rule));
      unsound_.insert(path);
      return false;
    }
    key->set(config_, converted(*key, found).value());
    return true;
  }

  bool set_texts(const std::string& where, const ConfigKey& key, const FoundValue& found) {
    std::vector<std::string> wrong;
    const auto texts = read_text_list(key.path, found, wrong);
    for (const std::string& what : wrong) problem(where, what);
    if (!wrong.empty()) {
      unsound_.insert(key.path);
      return false;
    }
    key.set(config_, texts);
    return true;
  }

  /// A key that does nothing as things stand must have its default.
  void check_use(const ConfigKey& key) {
    const ConfigUse& use = key.rule.only_with;
    if (use.key.empty() || !sound({key.path, use.key}) || key.get(config_) == default_of(key)) return;
    const ConfigValue value = config_table().find(use.key)->get(config_);
    if (std::count(use.values.begin(), use.values.end(), std::get<std::string>(value)) > 0) return;
    cross_problem({key.path, use.key},
                  fmt::format("{} is {}, but is used only with {} {}, not {}; leave it out", key.path,
                              show_value(key.get(config_)), use.key, choice(use.values), show_value(value)));
  }

  /// Whether no value of these keys was refused; otherwise a check would blame a default.
  bool sound(const std::vector<std::string>& keys) const {
    return std::none_of(keys.begin(), keys.end(), [&](const std::string& key) { return unsound_.count(key) > 0; });
  }

  void cross_problem(const std::vector<std::string>& keys, const std::string& what) {
    if (what.empty()) return;
    for (const std::string& key : keys)
      if (const auto found = override_of_.find(key); found != override_of_.end()) return problem(found->second, what);
    problem(name_, what);
  }

  std::string name_;
  Config config_;
  std::vector<std::string> problems_;
  std::set<std::string> unsound_;
  std::map<std::string, std::string> override_of_;  // key -> the override that set it
};

}  // namespace

Config parse_config(std::string_view json, std::string_view name, std::span<const std::string> overrides) {
  Loader loader(name);
  loader.read(json);
  for (const std::string& text : overrides) loader.apply(text);
  return loader.finish();
}

Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides) {
  std::error_code error;
  const std::string name = file.string();
  if (const std::string lost = lost_link(file); !lost.empty()) throw ConfigError(name + ": " + lost);
  // What cannot be looked at shows why when it is opened.
  if (!std::filesystem::exists(file, error) && !error) throw ConfigError(name + ": there is no such file");
  if (std::filesystem::is_directory(file, error)) throw ConfigError(name + ": is a directory, not a file");
  std::string json(kMostConfigFileBytes + 1, '\0');  // one more is too many
  try {
    const auto stream = open_bytes(file);
    stream->read(json.data(), static_cast<std::streamsize>(json.size()));
    json.resize(static_cast<std::size_t>(stream->gcount()));
  } catch (const DataError& unread) {
    throw ConfigError(unread.what());
  }
  if (json.size() > kMostConfigFileBytes) {
    throw ConfigError(fmt::format("{}: is longer than the {} bytes that a configuration may have; is it one?", name,
                                  kMostConfigFileBytes));
  }
  return parse_config(json, name, overrides);
}

void require_training_data(const Config& config) {
  const DataConfig& data = config.data;
  if (!data.task.empty()) return;
  std::vector<std::string> missing;
  if (data.train.empty()) {
    if (data.train_source.empty()) missing.push_back("data.train_source");
    if (data.train_target.empty()) missing.push_back("data.train_target");
  }
  if (data.valid.empty() && data.hold_out_valid == 0) {
    if (data.valid_source.empty()) missing.push_back("data.valid_source");
    if (data.valid_target.empty()) missing.push_back("data.valid_target");
  }
  if (missing.size() == 4) missing.push_back("or data.task");
  if (!missing.empty() && missing[0].starts_with("data.valid")) {
    throw ConfigError(fmt::format("no validation text; set {}, or data.hold_out_valid", fmt::join(missing, ", ")));
  }
  if (!missing.empty()) throw ConfigError(fmt::format("nothing to train on; set {}", fmt::join(missing, ", ")));
}

std::string config_json(const Config& config) {
  std::string json = "{", section;
  for (const ConfigKey& key : config_table().keys) {
    if (key.section != section) json += fmt::format("{}\n  \"{}\": {{", section.empty() ? "" : "\n  },", key.section);
    json += fmt::format("{}\n    \"{}\": {}", key.section == section ? "," : "", key.name, show_value(key.get(config)));
    section = key.section;
  }
  return json + "\n  }\n}\n";
}

std::string config_docs() {
  std::string text = fmt::format(
      "# Configuration\n\n"
      "<!-- Made by `weft config docs` from train/config_table.cpp; edit that instead. -->\n\n"
      "One JSON file says everything about a run. Every key is optional; `//` and `/* */` comments are "
      "allowed. A key on the command line, `--set model.d_model=256`, wins over the file. `weft config show` "
      "prints every key with the value that a run would use. Integers are at most {} unless the table says "
      "otherwise. A key that would have no effect (see *only with*) must be left at its default.\n",
      kLargestInteger);
  constexpr const char* kTypes[] = {"boolean", "integer", "number", "string", "array"};
  for (const ConfigSection& section : config_table().sections) {
    text += fmt::format("\n## {}\n\n{}\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n",
                        section.name, section.meaning);
    for (const ConfigKey& key : config_table().keys) {
      if (key.section != section.name) continue;
      const ConfigUse& use = key.rule.only_with;
      const std::string only = use.key.empty() ? "" : fmt::format(" Only with `{}` {}.", use.key, choice(use.values));
      text += fmt::format("| `{}` | {} | `{}` | {} | {}{} |\n", key.path, kTypes[default_of(key).index()],
                          show_value(default_of(key)), allowed(key.rule), key.meaning, only);
    }
  }
  return text;
}

std::vector<std::string> config_differences(const Config& before, const Config& after) {
  std::vector<std::string> differences;
  for (const ConfigKey& key : config_table().keys) {
    const ConfigValue old_value = key.get(before), new_value = key.get(after);
    if (old_value != new_value)
      differences.push_back(fmt::format("{}: {} -> {}", key.path, show_value(old_value), show_value(new_value)));
  }
  return differences;
}

}  // namespace weft

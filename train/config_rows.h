// How the rows of the configuration table are made, shared by the files that hold them.
#pragma once

#include <string>
#include <utility>

#include "weft/train/config_table.h"

namespace weft {

/// Adds a section to a table, and its rows one by one.
template <class Section>
class ConfigRows {
 public:
  ConfigRows(ConfigTable& table, std::string name, Section Config::*section, std::string meaning)
      : table_(table), name_(std::move(name)), section_(section) {
    table_.sections.push_back({name_, std::move(meaning)});
  }

  template <class Value>
  void operator()(const std::string& name, Value Section::*member, ConfigRule rule, std::string meaning) const {
    const auto section = section_;
    table_.keys.push_back(
        {name_, name, name_ + "." + name, std::move(rule), std::move(meaning),
         [=](const Config& config) -> ConfigValue { return config.*section.*member; },
         [=](Config& config, const ConfigValue& value) { config.*section.*member = std::get<Value>(value); }});
  }

 private:
  ConfigTable& table_;
  std::string name_;
  Section Config::*section_;
};

/// Adds the sections about what is done with a model: training, decoding and bench (config_table_work.cpp).
void add_work(ConfigTable& table);

}  // namespace weft

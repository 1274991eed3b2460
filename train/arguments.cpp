#include "weft/train/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cxxopts.hpp>
#include <iterator>
#include <optional>
#include <sstream>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

Arguments::Arguments(const VerbHelp& help, const std::vector<std::string>& words)
    : verb_(help.verb), expected_(help.positional) {
  constexpr const char* kPositional = "positional";  // an option to cxxopts, but to nobody else
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (name == std::string("--") + kPositional) refuse(fmt::format("Option '{}' does not exist", kPositional));
  }
  cxxopts::Options options("weft " + help.verb);
  options.add_options()("help", "")(kPositional, "", cxxopts::value<std::vector<std::string>>());
  for (const Option& option : help.options) {
    if (option.value.empty()) {
      options.add_options()(option.name, "");
    } else {
      // One string a value: cxxopts would cut a list of them at commas.
      options.add_options()(option.name, "", cxxopts::value<std::string>());
    }
  }
  options.parse_positional({kPositional});
  std::vector<std::string> copies{"weft"};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& copy : copies) pointers.push_back(copy.data());
  int argc = static_cast<int>(pointers.size());
  char** argv = pointers.data();  // cxxopts 2 takes both by reference, cxxopts 3 does not care
  try {
    const auto result = options.parse(argc, argv);
    for (const auto& argument : result.arguments()) {
      if (argument.key() == kPositional) {
        positional_.push_back(argument.value());
      } else {
        values_[argument.key()].push_back(argument.value());
      }
    }
    for (const Option& option : help.options) {  // which cxxopts would take as on, whatever stands there
      const std::vector<std::string> values = all(option.name);
      if (!option.value.empty() || values.empty() || values.back() == "true") continue;
      throw ConfigError(fmt::format("--{} takes no value, found \"{}\"", option.name, values.back()));
    }
  } catch (const std::exception& error) {  // its classes differ between versions
    refuse(error.what());
  }
  require_not_empty(help.options);
  if (!wants_help()) require_use();
}

/// An empty name would be the current folder to some, and nothing at all to others. A text may be empty.
void Arguments::require_not_empty(const std::vector<Option>& options) const {
  for (const Option& option : options) {
    const std::vector<std::string> values = all(option.name);
    if (option.value == "TEXT" || std::count(values.begin(), values.end(), "") == 0) continue;
    refuse(fmt::format("--{} is empty; give its value", option.name));
  }
  const auto empty = std::find(positional_.begin(), positional_.end(), "");
  if (empty == positional_.end()) return;
  refuse(fmt::format("argument {} of {} is empty; expected {}", empty - positional_.begin() + 1, positional_.size(),
                     expected_));
}

/// Of a verb with several uses, the words must be those of one, in number and by the first of them.
void Arguments::require_use() const {
  if (expected_.find(" | ") == std::string::npos) return;
  const std::string found = fmt::format("{}", fmt::join(positional_, " "));
  std::vector<std::string> first;
  std::string rest = expected_;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(" | "), rest.size());
    const std::string use = rest.substr(0, end);
    rest.erase(0, end + 3);
    const std::vector<std::string> words = words_of(use);
    first.push_back(words.front());
    if (positional_.empty() || positional_.front() != words.front()) continue;
    if (positional_.size() == words.size()) return;
    refuse(fmt::format("expected {}, found {}", use, found));
  }
  refuse(fmt::format("expected {}, found {}{}", expected_, found.empty() ? "nothing" : found,
                     positional_.empty() ? "" : suggestion(positional_.front(), first)));
}

void Arguments::refuse(const std::string& problem) const {
  throw ConfigError(fmt::format("{0}: {1}; see weft {0} --help", verb_, problem));
}

const std::string& Arguments::only_positional() const {
  if (positional_.size() != 1) {
    refuse(fmt::format("expected one {}, found {}", expected_, positional_.size()));
  }
  return positional_[0];
}

std::vector<std::string> Arguments::all(const std::string& option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::string Arguments::text(const std::string& option) const {
  if (!has(option)) refuse(fmt::format("--{} is missing", option));
  const std::vector<std::string>& values = values_.at(option);
  if (values.size() > 1) refuse(fmt::format("--{} is given {} times; give it once", option, values.size()));
  return values.front();
}

std::string Arguments::text(const std::string& option, const std::string& otherwise) const {
  return has(option) ? text(option) : otherwise;
}

Index Arguments::whole(const std::string& option, Index otherwise, Index least, Index most) const {
  if (!has(option)) return otherwise;
  const auto value = parsed<Index>(text(option));
  if (!value || *value < least || *value > most) {
    refuse(fmt::format("--{} is \"{}\"; must be a whole number from {} to {}", option, text(option), least, most));
  }
  return *value;
}

double Arguments::number(const std::string& option, double otherwise, double most) const {
  if (!has(option)) return otherwise;
  const auto value = parsed<double>(text(option));
  if (!value || !(*value >= 0 && *value <= most)) {
    refuse(fmt::format("--{} is \"{}\"; must be a number from 0 to {}", option, text(option), most));
  }
  return *value;
}

std::string format_help(const VerbHelp& help) {
  std::string text = fmt::format("{}\n\nusage: weft {} {}{}\n", help.meaning, help.verb, help.positional,
                                 help.options.empty() ? "" : " [option]...");
  std::vector<std::vector<std::string>> rows;
  for (const Option& option : help.options) {
    rows.push_back(
        {fmt::format("  --{}{}{}", option.name, option.value.empty() ? "" : " ", option.value), option.meaning});
  }
  rows.push_back({"  --help", "Print this."});
  text += "\noptions:\n" + format_table(rows) + "\nexamples:\n";
  for (const std::string& example : help.examples) text += "  " + example + "\n";
  return text;
}

}  // namespace weft

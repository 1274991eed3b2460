// The arguments of one verb: options with help, and positional arguments.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// An option of a verb.
struct Option {
  std::string name;   ///< without the dashes
  std::string value;  ///< what stands for its value in the help, such as "N"; empty for a flag
  std::string meaning;
};

/// A verb as its help shows it.
struct VerbHelp {
  std::string verb;        ///< "translate"
  std::string positional;  ///< "CHECKPOINT"; uses of which each begins with a word of its own as "show FILE | docs"
  std::string meaning;     ///< one sentence or a few
  std::vector<Option> options;
  std::vector<std::string> examples;  ///< whole commands
};

/// What the user gave to a verb.
class Arguments {
 public:
  /// Parses what stands after the verb. Throws ConfigError, naming the verb's help, for an unknown option, one without its
  /// value, an empty value or argument, and, unless help is asked for, for words that are none of the verb's uses.
  Arguments(const VerbHelp& help, const std::vector<std::string>& words);

  bool wants_help() const { return has("help"); }
  const std::vector<std::string>& positional() const { return positional_; }
  /// The positional argument that must be the only one. Throws ConfigError otherwise.
  const std::string& only_positional() const;

  /// Throws ConfigError with what is wrong with the arguments, and where the verb's help is.
  [[noreturn]] void refuse(const std::string& problem) const;

  bool has(const std::string& option) const { return values_.count(option) != 0; }
  /// All values of an option that may be repeated.
  std::vector<std::string> all(const std::string& option) const;
  /// The last value of an option. Throws ConfigError if it was not given.
  std::string text(const std::string& option) const;
  std::string text(const std::string& option, const std::string& otherwise) const;
  /// The same as a whole number from `least` to `most`, or as a number from 0 to `most`. Throws ConfigError for anything
  /// else.
  Index whole(const std::string& option, Index otherwise, Index least, Index most = 1'000'000'000) const;
  double number(const std::string& option, double otherwise, double most) const;

 private:
  void require_not_empty(const std::vector<Option>& options) const;
  void require_use() const;

  std::string verb_;
  std::string expected_;
  std::vector<std::string> positional_;
  std::map<std::string, std::vector<std::string>> values_;
};

/// The help of a verb, ready to print.
std::string format_help(const VerbHelp& help);

}  // namespace weft

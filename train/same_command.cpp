#include "weft/train/same_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

/// A word as a shell takes it.
std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::strchr("_-+=./,:", c) != nullptr;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string same_command(const Arguments& arguments) {
  std::string text = "weft train " + shell_quoted(arguments.only_positional());
  for (const char* option : {"set", "minutes", "from", "run", "threads"}) {
    for (const std::string& value : arguments.all(option)) text += fmt::format(" --{} {}", option, shell_quoted(value));
  }
  return text;
}

}  // namespace weft

#include "weft/train/same_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/train/run_files.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::strchr("_-+=./,:", c) != nullptr;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// "weft train" with its configuration and the options of these names that were given.
std::string command_with(const Arguments& arguments, std::initializer_list<const char*> options) {
  std::string text = "weft train " + shell_word(arguments.only_positional());
  for (const char* option : options) {
    for (const std::string& value : arguments.all(option)) text += fmt::format(" --{} {}", option, shell_word(value));
  }
  return text;
}

}  // namespace

std::string same_command(const Arguments& arguments) {
  return command_with(arguments, {"set", "minutes", "from", "run", "threads"});
}

std::string next_command(const Arguments& arguments, const fs::path& folder) {
  const fs::path run = folder.has_filename() ? folder : folder.parent_path();  // of "runs/my/"
  std::string next;
  for (Index number = 2; next.empty() || is_there(next); ++number) next = fmt::format("{}-{}", run.string(), number);
  return command_with(arguments, {"set", "minutes", "threads"}) +
         fmt::format(" --from {} --run {}", shell_word((run / "last.safetensors").string()), shell_word(next));
}

void require_same_run(const Config& before, const Config& now, const fs::path& folder, const Arguments& arguments) {
  const auto problem = [&](const Config& config) -> std::string {
    try {
      require_same_config(before, config, folder.string());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  std::string text = problem(now);
  if (text.empty()) return;
  Config as_long = now;
  as_long.training.steps = before.training.steps;
  as_long.training.minutes = before.training.minutes;
  if (problem(as_long).empty()) {
    text += "\nor train on from its parameters in a new run: " + next_command(arguments, folder);
  }
  throw ConfigError(text);
}

}  // namespace weft

#include "weft/train/same_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <system_error>

#include "weft/core/error.h"
#include "weft/data/utf8.h"
#include "weft/train/run_files.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

bool is_utf8(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == kInvalidCodePoint) return false;
    at += point.length;
  }
  return true;
}

/// A word with all but printable ASCII as numbers, three octal digits each, after which any character may follow.
std::string escaped_word(const std::string& word) {
  std::string text = "$'";
  for (const char c : word) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return text + "'";
}

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::strchr("_-+=./,:", c) != nullptr;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  if (has_controls(word) || !is_utf8(word)) return escaped_word(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// "weft train" with its configuration and the options of these names that were given.
std::string command_with(const Arguments& arguments, std::initializer_list<const char*> options) {
  std::string text = program_name() + " train " + shell_path(arguments.only_positional());
  for (const char* option : options) {
    for (const std::string& value : arguments.all(option)) text += fmt::format(" --{} {}", option, shell_word(value));
  }
  return text;
}

/// The command that begins a run as `arguments` describe with the last parameters of that in `folder`, in a folder
/// beside it that is not there yet.
std::string next_command(const Arguments& arguments, const fs::path& folder) {
  const fs::path run = folder.has_filename() ? folder : folder.parent_path();  // of "runs/my/"
  std::string next;
  std::error_code error;
  for (Index number = 2; next.empty() || fs::exists(next, error); ++number) {
    next = fmt::format("{}-{}", run.string(), number);
  }
  return command_with(arguments, {"set", "minutes", "threads"}) +
         fmt::format(" --from {} --run {}", shell_word((run / "last.safetensors").string()), shell_word(next));
}

}  // namespace

std::string program_name() {
  const std::string name = program_invocation_short_name;
  return name.empty() ? "weft" : shell_word(name);
}

std::string shell_path(const fs::path& path) {
  const std::string& word = path.native();
  return shell_word(word.starts_with('-') ? "./" + word : word);
}

std::string same_command(const Arguments& arguments) {
  return command_with(arguments, {"set", "minutes", "from", "run", "threads"});
}

void require_same_run(const Config& before, const Config& now, const fs::path& folder, const Arguments& arguments) {
  try {
    require_same_config(before, now, folder.string());
  } catch (const ConfigError& error) {
    Config as_long = now;
    as_long.training.steps = before.training.steps;
    as_long.training.minutes = before.training.minutes;
    if (!run_differences(before, as_long).empty() || !is_utf8(folder.string())) throw;  // --from is to be UTF-8
    throw ConfigError(fmt::format("{}\nor train on from its parameters in a new run: {}", error.what(),
                                  next_command(arguments, folder)));
  }
}

}  // namespace weft

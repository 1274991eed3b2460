#include "weft/train/task_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/core/temporary.h"
#include "weft/data/toy.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSource = ".src", kTarget = ".trg";

/// The files of a text, each with its lines.
std::vector<std::pair<std::string, const std::vector<std::string>*>> files_of(const TaskText& text) {
  std::vector<std::pair<std::string, const std::vector<std::string>*>> files;
  for (const auto& [split, pairs] : text) {
    files.emplace_back(fmt::format("{}{}", split, kSource), &pairs.source);
    files.emplace_back(fmt::format("{}{}", split, kTarget), &pairs.target);
  }
  return files;
}

/// What is at a path, which may be a link.
fs::file_type type_at(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type();
}

constexpr auto has_name_of_text = [](std::string_view name) { return is_text_name(name); };

}  // namespace

bool is_text_name(std::string_view name) { return name.ends_with(kSource) || name.ends_with(kTarget); }

std::vector<std::string> other_task_files(const TaskText& text, const fs::path& run) {
  std::vector<std::string> others;
  for (const auto& [name, lines] : files_of(text)) {
    const fs::path path = run / kTaskFolder / name;
    if (!is_there(path)) continue;
    if (!is_file(path) || read_file(path) != fmt::format("{}\n", fmt::join(*lines, "\n"))) others.push_back(name);
  }
  return others;
}

void stage_task(const TaskText& text, const fs::path& run) {
  if (text.empty()) return;
  const fs::path data = run / kTaskFolder, staged = run / kStagedFolder;
  for (const fs::path& folder : {data, staged}) {
    const fs::file_type type = type_at(folder);
    if (type == fs::file_type::not_found || type == fs::file_type::directory) continue;
    throw DataError(fmt::format("{}: is {}, but the run writes its task's text into its own folder; move it away",
                                folder.string(), type == fs::file_type::symlink ? "a link" : "no folder"));
  }
  for (const auto& file : files_of(text)) {
    const fs::path path = data / file.first;
    if (type_at(path) != fs::file_type::directory) continue;
    throw DataError(fmt::format("{}: is a folder in the place of the task's text; move it away", path.string()));
  }
  remove_staged_task(run);
  write_toy(text, staged);
  std::error_code error;
  fs::create_directory(data, error);
  if (!error && ::access(data.c_str(), W_OK | X_OK) == 0) return;
  throw DataError(fmt::format("{}: cannot be written to ({}); ask for the right to", data.string(),
                              error ? error.message() : std::strerror(errno)));
}

void remove_task(const TaskText& text, const fs::path& run) {
  for (const auto& file : files_of(text)) {
    const fs::path path = run / kTaskFolder / file.first;
    if (file_calls().unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    throw Error(fmt::format("{}: cannot remove ({})", path.string(), std::strerror(errno)));
  }
}

void place_task(const TaskText& text, const fs::path& run) {
  for (const auto& file : files_of(text)) {
    const fs::path to = run / kTaskFolder / file.first;
    if (file_calls().rename((run / kStagedFolder / file.first).c_str(), to.c_str()) == 0) continue;
    throw Error(fmt::format("{}: cannot be written: {}; check the disk", to.string(), std::strerror(errno)));
  }
  if (!text.empty()) remove_dead_temporaries(run / kTaskFolder, has_name_of_text);  // of an earlier version
  remove_staged_task(run);
}

void remove_staged_task(const fs::path& run) {
  const fs::path staged = run / kStagedFolder;
  if (type_at(staged) != fs::file_type::directory) return;
  remove_dead_temporaries(staged, has_name_of_text);
  std::error_code ignored;
  for (const std::string& name : names_in(staged)) {
    if (is_text_name(name)) fs::remove(staged / name, ignored);
  }
  fs::remove(staged, ignored);
}

}  // namespace weft

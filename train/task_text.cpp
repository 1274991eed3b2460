#include "weft/train/task_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
constexpr const char* kMark = "data.unfinished";

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

/// Writes all files anew, and removes what killed processes left of writing them.
void write_files(const TaskText& text, const fs::path& data) {
  write_toy(text, data);
  remove_dead_temporaries(data,
                          [](std::string_view name) { return name.ends_with(kSource) || name.ends_with(kTarget); });
}

}  // namespace

std::vector<std::string> other_task_files(const TaskText& text, const fs::path& run) {
  std::vector<std::string> others;
  for (const auto& [name, lines] : files_of(text)) {
    const fs::path path = run / kTaskFolder / name;
    if (!is_there(path)) continue;
    if (!is_file(path) || read_file(path) != fmt::format("{}\n", fmt::join(*lines, "\n"))) others.push_back(name);
  }
  return others;
}

void write_task(const TaskText& text, const fs::path& run) {
  if (text.empty()) return;
  const fs::path data = run / kTaskFolder;
  const fs::file_type type = type_at(data);
  if (type != fs::file_type::not_found && type != fs::file_type::directory) {
    throw DataError(fmt::format("{}: is {}, but the run writes its task's text into its own folder; move it away",
                                data.string(), type == fs::file_type::symlink ? "a link" : "no folder"));
  }
  for (const auto& file : files_of(text)) {
    const fs::path path = data / file.first;
    if (type_at(path) != fs::file_type::directory) continue;
    throw DataError(fmt::format("{}: is a folder in the place of the task's text; move it away", path.string()));
  }
  const fs::path mark = run / kMark;
  if (type_at(mark) != fs::file_type::not_found && !is_task_unfinished(run)) {
    throw DataError(
        fmt::format("{}: is in the place of a file that the run makes for a while; move it away", mark.string()));
  }
  write_file(mark, "");
  for (const auto& file : files_of(text)) {  // a link would lead to a file of the user
    const fs::path path = data / file.first;
    if (type_at(path) == fs::file_type::symlink) file_calls().unlink(path.c_str());
  }
  write_files(text, data);
}

bool is_task_unfinished(const fs::path& run) {
  std::error_code ignored;
  const fs::path mark = run / kMark;
  return type_at(mark) == fs::file_type::regular && fs::is_empty(mark, ignored);
}

void finish_task(const fs::path& run) {
  const fs::path mark = run / kMark;
  remove_leftovers(mark);
  if (!is_task_unfinished(run) || file_calls().unlink(mark.c_str()) == 0 || errno == ENOENT) return;
  throw Error(fmt::format("{}: cannot remove ({})", mark.string(), std::strerror(errno)));
}

void mend_task(const TaskText& text, const fs::path& run) {
  if (!is_task_unfinished(run)) return;
  if (!text.empty()) write_files(text, run / kTaskFolder);
  finish_task(run);
}

}  // namespace weft

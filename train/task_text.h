// The text of a toy task in a run's folder. It is written beside its place first, so that the text of an earlier run is left
// alone until all of the new one is there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/data/parallel_text.h"

namespace weft {

/// The splits of a task by name, as make_toy makes them; none of a run whose text is in files.
using TaskText = std::vector<std::pair<std::string, ParallelText>>;

/// The folder of a run that has the text, and the one in which it is written.
inline constexpr const char *kTaskFolder = "data", *kStagedFolder = "data.new";

/// Whether a file of this name in kStagedFolder is taken for a task's text there.
bool is_text_name(std::string_view name);

/// The files in a run's kTaskFolder, by their names there, that place_task would replace by what is different.
std::vector<std::string> other_task_files(const TaskText& text, const std::filesystem::path& run);

/// Writes a text into a run's kStagedFolder. Throws DataError if that or kTaskFolder is a link or a file, or if a folder is in
/// the place of a text there; Error if the text cannot be written. Does nothing for no text.
void stage_task(const TaskText& text, const std::filesystem::path& run);

/// Removes the files from kTaskFolder that place_task would replace. Throws Error if that fails.
void remove_task(const TaskText& text, const std::filesystem::path& run);

/// Moves the text that is staged to kTaskFolder. Throws Error if that fails.
void place_task(const TaskText& text, const std::filesystem::path& run);

/// Removes what a process that was killed left in kStagedFolder, and that folder unless there is something else in it.
void remove_staged_task(const std::filesystem::path& run);

}  // namespace weft

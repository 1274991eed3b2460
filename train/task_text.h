// The text of a toy task in a run's folder. A mark beside it says that one is being replaced, so that a run that is there
// after all, as --fresh was killed or failed, gets its own text back.
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

/// The folder of a run that has the text.
inline constexpr const char* kTaskFolder = "data";

/// The files in a run's kTaskFolder, by their names there, that write_task would replace by what is different.
std::vector<std::string> other_task_files(const TaskText& text, const std::filesystem::path& run);

/// Writes the text of a run that begins, which is_task_unfinished() from then on until finish_task(). Throws DataError if
/// kTaskFolder is a link or a file, or if a folder is in the place of a text; Error if the text cannot be written. Does
/// nothing for no text.
void write_task(const TaskText& text, const std::filesystem::path& run);

/// Whether a run was killed, or failed, between write_task() and finish_task(): the text may be its, or an earlier run's.
bool is_task_unfinished(const std::filesystem::path& run);
void finish_task(const std::filesystem::path& run);

/// Writes the text of the run that is there after all, if is_task_unfinished(). Throws Error if that fails.
void mend_task(const TaskText& text, const std::filesystem::path& run);

}  // namespace weft

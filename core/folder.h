// What is at a path, and in a folder. Of what the system fails to look at nothing is taken for granted: it is an error.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft {

/// Whether there is anything at a path, at the end of its links. Throws Error if the system cannot say.
bool is_there(const std::filesystem::path& path);

/// The names of all that is in a folder, in no order; none if there is no folder there. Throws Error if it cannot be read.
/// Unlike std::filesystem's iterator, which ends the process, it throws std::bad_alloc when memory is out.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace weft

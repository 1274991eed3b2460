// What is in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft {

/// The names of all that is in a folder, in no order; none if it cannot be read. Unlike std::filesystem's iterator, which
/// ends the process, it throws std::bad_alloc when memory is out.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace weft

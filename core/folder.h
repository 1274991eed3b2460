// What is at a path, and in a folder. Of what the system fails to look at nothing is taken for granted: it is an error.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft {

/// What to say, in one line, of a symbolic link that leads to nothing; empty for anything else at a path, for nothing, and for what the
/// system fails to look at.
std::string lost_link(const std::filesystem::path& path);

/// Where the links at a path lead, or would, if there is nothing at their end; the path itself if it is no link.
std::filesystem::path end_of_links(std::filesystem::path path);

/// Whether there is anything at a path, at the end of its links. Throws Error if the system cannot say, DataError for a link
/// that leads to nothing: what it led to may be on a disk that is not there now.
bool is_there(const std::filesystem::path& path);

/// Whether there is a regular file, or a folder, at the end of a path's links. Throws as is_there.
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

/// Whether a path leads to this open file or folder. If not, errno is 0 where nothing is there or another took its place,
/// and else says why the system cannot tell.
bool is_at(int file, const std::filesystem::path& path);

/// The names of all that is in a folder, in no order; none if there is no folder there. Throws Error if it cannot be read.
/// Unlike std::filesystem's iterator, which ends the process, it throws std::bad_alloc when memory is out.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace weft

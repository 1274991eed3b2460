// The hash of a whole file.
#pragma once

#include <cstdint>
#include <filesystem>

namespace weft {

/// Mixes the bytes of a file into a hash. Throws DataError if it cannot be read.
std::uint64_t file_hash(const std::filesystem::path& path, std::uint64_t hash = 0);

}  // namespace weft

// Files of text as streams of bytes, unpacked on the way where they are gzipped, a buffer at a time, however much they
// unpack to. What a damaged file gave before the
// damage is never taken for the whole: reading on from there throws.
#pragma once

#include <filesystem>
#include <istream>
#include <memory>

namespace weft {

/// Opens a file, a pipe or a device to read from. Throws DataError if it is missing, a folder, a pipe that nobody writes to
/// (see open_input), or cannot be opened; so does reading where it fails, naming the file.
std::unique_ptr<std::istream> open_bytes(const std::filesystem::path& path);

/// Opens a file to read text from. A name that ends in .gz, or gzip's first two bytes, mean gzip data (RFC 1952), of
/// which several members may follow each other, as `cat a.gz b.gz` makes them.
/// Throws as open_bytes does, and where gzip data is damaged or cut.
std::unique_ptr<std::istream> open_text(const std::filesystem::path& path);

}  // namespace weft

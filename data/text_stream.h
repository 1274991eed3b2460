// Files of text as streams of bytes, unpacked on the way where they are gzipped. What a damaged file gave before the
// damage is never taken for the whole: reading on from there throws.
#pragma once

#include <filesystem>
#include <istream>
#include <memory>

namespace weft {

/// Opens a file to read text from. A name that ends in .gz, or gzip's first two bytes, mean gzip data (RFC 1952), of
/// which several members may follow each other, as `cat a.gz b.gz` makes them.
/// Throws DataError if the file is missing, a folder, or cannot be opened. Reading throws DataError, naming the file,
/// where gzip data is damaged or cut.
std::unique_ptr<std::istream> open_text(const std::filesystem::path& path);

}  // namespace weft

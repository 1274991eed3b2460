#include "weft/data/file_hash.h"

#include <algorithm>
#include <span>
#include <string>

#include "weft/core/file.h"
#include "weft/data/text_hash.h"

namespace weft {

std::uint64_t file_hash(const std::filesystem::path& path, std::uint64_t hash) {
  const InputFile file(path);
  std::string bytes;
  constexpr std::uint64_t kPiece = 1 << 20;
  for (std::uint64_t at = 0; at < file.size(); at += bytes.size()) {
    bytes.resize(static_cast<std::size_t>(std::min(kPiece, file.size() - at)));
    file.read_at(at, std::as_writable_bytes(std::span(bytes)));
    hash = text_hash(bytes, hash);
  }
  return mix_hash(hash, file.size());
}

}  // namespace weft

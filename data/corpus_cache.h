// An encoded corpus in one file, so that a text is cut into tokens once. A file is whole or absent, and what is read from
// it is what was written: anything else in its place reads as a damaged file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "weft/data/corpus.h"

namespace weft {

/// Writes a corpus and its report, atomically. `key` stands for all that the corpus depends on. Throws Error if
/// the file cannot be written, or if the corpus is not of the size that the report says.
void save_corpus(const std::filesystem::path& path, std::uint64_t key, const EncodedCorpus& corpus);

/// What load_corpus found.
struct LoadedCorpus {
  std::optional<EncodedCorpus> corpus;  ///< nothing if there is no such file or it cannot be used
  std::string problem;                  ///< why it cannot be used; empty if there is no such file
};

/// Reads what save_corpus wrote with the same key. Never throws for what the file holds: a file that is cut, altered, or
/// something else is a problem in words.
LoadedCorpus load_corpus(const std::filesystem::path& path, std::uint64_t key);

}  // namespace weft

// The toy tasks: parallel text that Weft makes itself, so that anyone can train and test a model without a
// download. Equal arguments give equal bytes on every machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/types.h"
#include "weft/data/parallel_text.h"

namespace weft {

/// The toy tasks by name: "fr-en", a small French and English grammar; "copy", "reverse" and "sort", rows of
/// the numbers 0 to 49.
std::vector<std::string> toy_tasks();

/// Makes the splits of a toy task in order: "train", "valid", "test", then extra test sets.
///
/// `pairs` is the size of train, 60,000 unless given for fr-en and 50,000 for the others; valid and test have
/// a tenth of it, but at least one pair and at most 1,000. Nothing in valid or test is in train, on either
/// side: a hash of the target decides which of the three a pair may be in.
///
/// - fr-en: some 8 in 100 of all adjective-noun and verb-object pairs are never together in train or valid.
///   Four in ten test sentences have such a pair; they are also the extra set "test_unseen". The sentence
///   "Jane visite l'Afrique en septembre." is in no split. Sources in a split differ.
/// - copy, reverse, sort: lengths from 1 to 20, 25 and 15, equally likely in train. Sequences in valid and in
///   test differ, so they have fewer of the shortest. reverse has an extra "test_long" with lengths from 26
///   to 30.
///
/// Throws ConfigError for an unknown task, or for pairs outside 1 to 1,000,000.
std::vector<std::pair<std::string, ParallelText>> make_toy(std::string_view task, std::optional<Index> pairs,
                                                           std::uint64_t seed);

/// Writes the splits as <split>.src and <split>.trg into a directory, made if missing, so that reading them gives
/// the same lines. Each file appears whole or not at all. Throws DataError if the directory cannot be made, Error
/// if a file cannot be written.
void write_toy(const std::vector<std::pair<std::string, ParallelText>>& splits, const std::filesystem::path& directory);

/// Whether it is the name of a file that write_toy makes of a split of a task.
bool is_name_of_toy_text(const std::string& name);

}  // namespace weft

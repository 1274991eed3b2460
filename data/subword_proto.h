// What Weft itself reads in a SentencePiece model: its pieces, its kind, and whether its tables can be followed safely.
// Whatever the bytes, reading ends in a structure or in an exception; the library trusts some of what is checked here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/subword_table.h"

namespace weft {

/// What a piece is for. The values are those of the file format.
enum class SubwordType { kNormal = 1, kUnknownPiece = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

/// A piece of a model.
struct SubwordPiece {
  std::string text;
  float score = 0;
  SubwordType type = SubwordType::kNormal;
};

/// The parts of a model that Weft looks at.
struct SubwordProto {
  std::string kind = "unigram";  ///< or "bpe", "word", "char"
  bool byte_fallback = false;
  std::vector<SubwordPiece> pieces;  ///< in the order of their ids
  SubwordTable table;                ///< by which it normalises text
  bool escapes_spaces = true;        ///< Whether a space becomes U+2581.
};

/// The longest .model file that is read, in bytes; those of 256,000 pieces have some 5 million.
inline constexpr std::size_t kMostSubwordBytes = std::size_t{16} << 20;

/// Reads the bytes of a .model file. Throws DataError, naming `name`, unless they are a protocol buffer of the right
/// form with pieces of UTF-8, scores of a usual size, and tables of normalisation that SubwordTable takes. At one place
/// of a text at most 64 user-defined pieces can begin, and at most 64 pieces have the same place in a map.
SubwordProto read_subword_proto(std::string_view bytes, const std::string& name);

/// The bytes that read_subword_proto took, without texts that the library would cut on loading to test itself.
std::string without_self_test(std::string_view bytes);

}  // namespace weft

// What Weft itself reads in a SentencePiece model: its pieces, its kind, and whether its tables can be followed safely.
// Whatever the bytes, reading ends in a structure or in an exception; the library trusts some of what is checked here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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
};

/// The longest .model file that is read, in bytes; those of 256,000 pieces have some 5 million.
inline constexpr std::size_t kMostSubwordBytes = std::size_t{16} << 20;

/// Reads the bytes of a .model file. Throws DataError, naming `name`, unless they are a protocol buffer of the right form
/// with pieces of UTF-8, scores of a usual size, and tables of normalisation that lead nowhere outside themselves, match no
/// more than 256 bytes, and make no more than 256 bytes of them. At one place of a text at most 32 matches of such a table
/// and 64 user-defined pieces can begin.
SubwordProto read_subword_proto(std::string_view bytes, const std::string& name);

}  // namespace weft

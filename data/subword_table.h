// The table by which a SentencePiece model normalises text: rules, each of which makes some bytes of those that it
// matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// What is wrong with the bytes of a model; read_subword_proto makes a DataError of it.
struct MalformedSubwords {
  const char* what;
};

/// How many times as long as what it matches a rule may make a text. Those of NFKC make it 11 times as long.
inline constexpr std::size_t kMostSubwordGrowth = 32;

/// A table that the library, which does not look where its own steps lead, can follow.
class SubwordTable {
 public:
  /// Without rules.
  SubwordTable() = default;

  /// Reads a field precompiled_charsmap. Throws MalformedSubwords if it leads outside itself, matches more than 256
  /// bytes, makes more than 256 bytes or kMostSubwordGrowth times what it matches, or has more than 32 matches at one
  /// place.
  explicit SubwordTable(std::string_view bytes);

  /// How many times as long as it is a text can become.
  std::size_t growth() const { return units_.empty() ? 1 : kMostSubwordGrowth; }

  /// Whether a rule matches a space, alone or with others.
  bool matches_spaces() const { return matches_spaces_; }

  /// How long text[begin, end), whole characters, can become: no less than it is, and more where rules of the table
  /// that match there make more of it.
  std::size_t most_made(std::string_view text, std::size_t begin, std::size_t end) const;

 private:
  std::size_t made_at(std::string_view text) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;  // each with a NUL at its end
  bool matches_spaces_ = false;
};

}  // namespace weft

#include "weft/data/subword_table.h"

#include <algorithm>
#include <cstring>

#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr std::size_t kMostMadeBytes = 256;
constexpr std::size_t kMostMatchBytes = 256;
constexpr int kMostMatches =
    32;  // SentencePiece has room for no more; it writes no more, but reads what it did not write

/// Where the children of unit `i` of a double-array trie stand: the child for a byte at this number XOR the byte, the
/// value at the number itself.
std::size_t children_of(std::size_t i, std::uint32_t unit) {
  return i ^ (std::size_t{unit >> 10} << ((unit & 0x200u) >> 6));
}

bool has_value(std::uint32_t unit) { return (unit & 0x100u) != 0; }

/// Where in the texts a value points to.
std::size_t text_of(std::uint32_t value) { return value & 0x7FFFFFFFu; }

/// Follows all paths of a trie that leads nowhere outside itself. Many units may have the same children, or one may be
/// below itself; the work is linear in the number of units all the same.
class TriePaths {
 public:
  TriePaths(const std::vector<std::uint32_t>& units, const std::string& texts)
      : units_(units), texts_(texts), first_(units.size(), kNone), next_(units.size(), kNone), below_(units.size()) {
    for (std::size_t i = 0; i < units.size(); ++i) {
      // An unused unit is 0; a NUL, the one byte that enters it, stays where it is and meets no value.
      if (units[i] >> 31 != 0 || units[i] == 0) continue;
      const std::size_t parent = i ^ (units[i] & 0xFFu);  // the place of its parents' children
      if (parent >= units.size()) continue;
      next_[i] = first_[parent];
      first_[parent] = static_cast<std::uint32_t>(i);
    }
  }

  /// Throws if a path is longer than kMostMatchBytes, as each is that leads back to itself, meets more than
  /// kMostMatches values, or has one of a text that is too long for what it matches. Returns whether a space is on any.
  bool check() {
    if (follow(children_of(0, units_[0]), 0).excess > 0) {
      throw MalformedSubwords{"a table of normalisation that makes more than 32 times as much as it matches"};
    }
    return spaces_;
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// The longest path, the most values on one, and by how much a text is longer than the bytes down to its value allow.
  /// They may be of three paths.
  struct Below {
    int bytes = 0, values = 0, excess = 0;
    bool known = false;
  };

  Below follow(std::size_t children, int depth) {
    if (depth > static_cast<int>(kMostMatchBytes)) throw too_deep();
    if (below_[children].known) return below_[children];
    Below result{0, 0, 0, true};
    for (std::uint32_t i = first_[children]; i != kNone; i = next_[i]) {
      const std::size_t place = children_of(i, units_[i]);
      const Below child = follow(place, depth + 1);
      const bool value = has_value(units_[i]);
      const int made = value ? static_cast<int>(std::strlen(&texts_[text_of(units_[place])])) : 0;
      spaces_ = spaces_ || (units_[i] & 0xFFu) == ' ';
      result.bytes = std::max(result.bytes, child.bytes + 1);
      result.values = std::max(result.values, child.values + (value ? 1 : 0));
      result.excess = std::max(result.excess, std::max(made, child.excess) - static_cast<int>(kMostSubwordGrowth));
    }
    if (depth + result.bytes > static_cast<int>(kMostMatchBytes)) throw too_deep();
    if (result.values > kMostMatches) {
      throw MalformedSubwords{"a table of normalisation with more than 32 matches at one place"};
    }
    return below_[children] = result;
  }

  static MalformedSubwords too_deep() { return {"a table of normalisation with a match of more than 256 bytes"}; }

  const std::vector<std::uint32_t>& units_;
  const std::string& texts_;
  std::vector<std::uint32_t> first_, next_;  // the units that are children at a place, and the one after each
  std::vector<Below> below_;                 // of the children at each place
  bool spaces_ = false;
};

}  // namespace

/// The table is a length, a double-array trie (Darts-clone) of that length, and the texts that its values point into.
SubwordTable::SubwordTable(std::string_view bytes) {
  if (bytes.empty()) return;
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) throw MalformedSubwords{"a broken table of normalisation"};
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size >= bytes.size() || size % sizeof size != 0 || size < 256 * sizeof size || bytes.back() != '\0') {
    throw MalformedSubwords{"a broken table of normalisation"};
  }
  units_.resize(size / sizeof size);
  std::memcpy(units_.data(), bytes.data(), size);
  texts_ = bytes.substr(size);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const std::uint32_t unit = units_[i];
    if (unit >> 31 != 0 && i != 0) continue;  // a value, which no step enters; the root needs no step
    const std::size_t first = children_of(i, unit);
    if ((first | 0xFF) >= units_.size()) throw MalformedSubwords{"a table of normalisation that leads outside itself"};
    if (!has_value(unit)) continue;
    const std::size_t begin = text_of(units_[first]);
    if (begin >= texts_.size()) throw MalformedSubwords{"a table of normalisation that leads outside itself"};
    if (std::string_view(texts_).substr(begin, kMostMadeBytes + 1).find('\0') == std::string_view::npos) {
      throw MalformedSubwords{"a table of normalisation that makes a long text of one match"};
    }
  }
  matches_spaces_ = TriePaths(units_, texts_).check();
}

/// The longest text that a rule makes of what `text` begins with.
std::size_t SubwordTable::made_at(std::string_view text) const {
  std::size_t made = 0, children = children_of(0, units_[0]);
  for (const char c : text) {
    const std::size_t i = children ^ static_cast<unsigned char>(c);
    if ((units_[i] & 0x800000FFu) != static_cast<unsigned char>(c)) break;
    children = children_of(i, units_[i]);
    if (has_value(units_[i])) made = std::max(made, std::strlen(&texts_[text_of(units_[children])]));
  }
  return made;
}

std::size_t SubwordTable::most_made(std::string_view text, std::size_t begin, std::size_t end) const {
  if (units_.empty()) return end - begin;
  std::size_t sum = 0;
  while (begin < end) {
    // A rule may match a part of a character; where the rule before it ends depends on what stands before.
    const std::size_t length = code_point_at(text, begin).length;
    std::size_t made = 0;
    for (std::size_t k = 0; k < length; ++k) made += made_at(text.substr(begin + k));
    sum += std::max(length, made);
    begin += length;
  }
  return sum;
}

}  // namespace weft

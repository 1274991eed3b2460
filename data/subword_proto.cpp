// Protocol buffers as https://protobuf.dev/programming-guides/encoding describes them; the numbers of the fields are those
// of sentencepiece_model.proto.
#include "weft/data/subword_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/text_file.h"

namespace weft {
namespace {

/// What is wrong with the bytes; read_subword_proto makes a DataError of it.
struct Malformed {
  const char* what;
};

/// How a field is written.
enum class Form { kNumber = 0, kEight = 1, kBytes = 2, kFour = 5 };

struct Field {
  std::uint64_t number = 0;
  Form form = Form::kNumber;
  std::uint64_t value = 0;  // of numbers
  std::string_view bytes;   // of texts and messages
};

/// A field that is read must have its form: the library passes over one that has not, and would then go by another value
/// than the one that was checked here.
void require_form(const Field& field, Form form) {
  if (field.form != form) throw Malformed{"a field of the wrong form"};
}

/// Walks over the fields of one message.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    if (tag < 8 || tag > 0xFFFFFFFFu) throw Malformed{"a field of no possible number"};
    field = {tag >> 3, static_cast<Form>(tag & 7), 0, {}};
    switch (field.form) {
      case Form::kNumber:
        field.value = varint();
        break;
      case Form::kEight:
        field.value = fixed<std::uint64_t>();
        break;
      case Form::kBytes:
        field.bytes = take(varint());
        break;
      case Form::kFour:
        field.value = fixed<std::uint32_t>();
        break;
      default:
        throw Malformed{"a field of an unknown form"};
    }
    return true;
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw Malformed{"it ends too early"};
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw Malformed{"a number without an end"};
  }

  template <class Number>
  Number fixed() {
    Number value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view rest_;
};

constexpr std::size_t kMostPieceBytes = 256;
constexpr std::size_t kMostReplacementBytes = 256;  // for what stands in the place of one character or token
constexpr float kLargestScore = 1e9F;               // sums of many stay finite
// What SentencePiece has room for at one place of a text; it writes no more, but then reads what it did not write.
constexpr std::size_t kMostMatches = 32;       // of rules of normalisation
constexpr std::size_t kMostNestedPieces = 64;  // that are user-defined
constexpr std::size_t kMostMatchBytes = 256;   // for what one rule replaces

SubwordPiece read_piece(std::string_view bytes) {
  SubwordPiece piece;
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 1) {
      require_form(field, Form::kBytes);
      piece.text = field.bytes;
    } else if (field.number == 2) {
      require_form(field, Form::kFour);
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    } else if (field.number == 3) {
      require_form(field, Form::kNumber);
      if (field.value < 1 || field.value > 6) throw Malformed{"a piece of no known type"};
      piece.type = static_cast<SubwordType>(field.value);
    }
  }
  if (piece.text.empty()) throw Malformed{"an empty piece"};
  if (piece.text.size() > kMostPieceBytes) throw Malformed{"a piece of more than 256 bytes"};
  if (text_problem(piece.text)) throw Malformed{"a piece with a NUL, or that is not UTF-8"};
  if (!(std::abs(piece.score) <= kLargestScore)) throw Malformed{"a score that is not a number, or too large"};
  return piece;
}

/// Throws unless at most kMostNestedPieces of the user-defined pieces can begin at the same place of a text.
void check_user_defined(const std::vector<SubwordPiece>& pieces) {
  std::vector<std::string_view> texts, nested;  // each of `nested` begins with the one before it
  for (const SubwordPiece& piece : pieces) {
    if (piece.type == SubwordType::kUserDefined) texts.push_back(piece.text);
  }
  std::sort(texts.begin(), texts.end());
  for (const std::string_view text : texts) {
    while (!nested.empty() && !text.starts_with(nested.back())) nested.pop_back();
    nested.push_back(text);
    if (nested.size() > kMostNestedPieces) {
      throw Malformed{"more than 64 user-defined pieces of which each begins with the one before"};
    }
  }
}

/// Where the children of unit `i` of a double-array trie stand: the child for a byte at this number XOR the byte, the value
/// at the number itself.
std::size_t children_of(std::size_t i, std::uint32_t unit) {
  return i ^ (std::size_t{unit >> 10} << ((unit & 0x200u) >> 6));
}

bool has_value(std::uint32_t unit) { return (unit & 0x100u) != 0; }

/// Follows all paths of a trie that leads nowhere outside itself. Many units may have the same children, or one may be
/// below itself; the work is linear in the number of units all the same.
class TriePaths {
 public:
  explicit TriePaths(const std::vector<std::uint32_t>& units)
      : units_(units), first_(units.size(), kNone), next_(units.size(), kNone), below_(units.size()) {
    for (std::size_t i = 0; i < units.size(); ++i) {
      // An unused unit is 0; a NUL, the one byte that enters it, stays where it is and meets no value.
      if (units[i] >> 31 != 0 || units[i] == 0) continue;
      const std::size_t parent = i ^ (units[i] & 0xFFu);  // the place of its parents' children
      if (parent >= units.size()) continue;
      next_[i] = first_[parent];
      first_[parent] = static_cast<std::uint32_t>(i);
    }
  }

  /// Throws if a path is longer than kMostMatchBytes, as each is that leads back to itself, or meets more than
  /// kMostMatches values.
  void check() { follow(children_of(0, units_[0]), 0); }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// The longest path, and the most values on one; they may be of two paths.
  struct Below {
    std::uint16_t bytes = 0, values = 0;
    bool known = false;
  };

  Below follow(std::size_t children, std::size_t depth) {
    if (depth > kMostMatchBytes) throw Malformed{"a table of normalisation with a match of more than 256 bytes"};
    if (below_[children].known) return below_[children];
    Below result{0, 0, true};
    for (std::uint32_t i = first_[children]; i != kNone; i = next_[i]) {
      const Below child = follow(children_of(i, units_[i]), depth + 1);
      const int values = child.values + (has_value(units_[i]) ? 1 : 0);
      result.bytes = std::max(result.bytes, static_cast<std::uint16_t>(child.bytes + 1));
      result.values = std::max(result.values, static_cast<std::uint16_t>(values));
    }
    if (depth + result.bytes > kMostMatchBytes) {
      throw Malformed{"a table of normalisation with a match of more than 256 bytes"};
    }
    if (result.values > kMostMatches)
      throw Malformed{"a table of normalisation with more than 32 matches at one place"};
    return below_[children] = result;
  }

  const std::vector<std::uint32_t>& units_;
  std::vector<std::uint32_t> first_, next_;  // the units that are children at a place, and the one after each
  std::vector<Below> below_;                 // of the children at each place
};

/// The table of a normaliser is a length, a double-array trie (Darts-clone) of that length, and the texts that its
/// values point into. The library follows it without looking where it leads.
void check_character_table(std::string_view table) {
  if (table.empty()) return;
  std::uint32_t size = 0;
  if (table.size() < sizeof size) throw Malformed{"a broken table of normalisation"};
  std::memcpy(&size, table.data(), sizeof size);
  table.remove_prefix(sizeof size);
  if (size >= table.size() || size % sizeof size != 0 || size < 256 * sizeof size || table.back() != '\0') {
    throw Malformed{"a broken table of normalisation"};
  }
  std::vector<std::uint32_t> units(size / sizeof size);
  std::memcpy(units.data(), table.data(), size);
  const std::string_view texts = table.substr(size);
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::uint32_t unit = units[i];
    if (unit >> 31 != 0 && i != 0) continue;  // a value, which no step enters; the root needs no step
    const std::size_t first = children_of(i, unit);
    if ((first | 0xFF) >= units.size()) throw Malformed{"a table of normalisation that leads outside itself"};
    if (!has_value(unit)) continue;
    const std::size_t begin = units[first] & 0x7FFFFFFFu;
    if (begin >= texts.size()) throw Malformed{"a table of normalisation that leads outside itself"};
    if (texts.substr(begin, kMostReplacementBytes + 1).find('\0') == texts.npos) {
      throw Malformed{"a table of normalisation that makes a long text of one character"};
    }
  }
  TriePaths(units).check();
}

void read_trainer(std::string_view bytes, SubwordProto& proto) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 3) {
      require_form(field, Form::kNumber);
      constexpr const char* kKinds[] = {"unigram", "bpe", "word", "char"};
      if (field.value < 1 || field.value > 4) throw Malformed{"a model of no known kind"};
      proto.kind = kKinds[field.value - 1];
    }
    if (field.number == 35) {
      require_form(field, Form::kNumber);
      proto.byte_fallback = field.value != 0;
    }
    if (field.number == 44 && field.bytes.size() > kMostReplacementBytes) {
      throw Malformed{"a long text for unknown tokens"};
    }
  }
}

void check_normaliser(std::string_view bytes) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number != 2) continue;
    require_form(field, Form::kBytes);
    check_character_table(field.bytes);
  }
}

}  // namespace

SubwordProto read_subword_proto(std::string_view bytes, const std::string& name) {
  try {
    SubwordProto proto;
    if (bytes.size() > kMostSubwordBytes) throw Malformed{"it is longer than any"};
    Message message(bytes);
    for (Field field; message.next(field);) {
      if (field.number <= 5) require_form(field, Form::kBytes);
      if (field.number == 1) proto.pieces.push_back(read_piece(field.bytes));
      if (field.number == 2) read_trainer(field.bytes, proto);
      if (field.number == 3 || field.number == 5) check_normaliser(field.bytes);
    }
    if (proto.pieces.empty()) throw Malformed{"it has no pieces"};
    check_user_defined(proto.pieces);
    return proto;
  } catch (const Malformed& problem) {
    throw DataError(fmt::format("{}: not a SentencePiece model ({}); give a .model file that SentencePiece wrote", name,
                                problem.what));
  }
}

}  // namespace weft

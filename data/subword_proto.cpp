// Protocol buffers as https://protobuf.dev/programming-guides/encoding describes them; the numbers of the fields are those
// of sentencepiece_model.proto.
#include "weft/data/subword_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "weft/core/error.h"
#include "weft/data/text_file.h"

namespace weft {
namespace {

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
  if (field.form != form) throw MalformedSubwords{"a field of the wrong form"};
}

/// Walks over the fields of one message.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    if (tag < 8 || tag > 0xFFFFFFFFu) throw MalformedSubwords{"a field of no possible number"};
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
        throw MalformedSubwords{"a field of an unknown form"};
    }
    return true;
  }

  std::size_t left() const { return rest_.size(); }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw MalformedSubwords{"it ends too early"};
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
    throw MalformedSubwords{"a number without an end"};
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
constexpr std::size_t kMostUnknownBytes = 256;  // for what stands in the place of an unknown token
constexpr float kLargestScore = 1e9F;           // sums of many stay finite
// User-defined pieces that SentencePiece has room for at one place of a text; it writes no more, but reads what it did
// not write.
constexpr std::size_t kMostNestedPieces = 64;
constexpr std::size_t kMostOfOneHash = 64;  // pieces in one place of a table; of good models some ten

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
      if (field.value < 1 || field.value > 6) throw MalformedSubwords{"a piece of no known type"};
      piece.type = static_cast<SubwordType>(field.value);
    }
  }
  if (piece.text.empty()) throw MalformedSubwords{"an empty piece"};
  if (piece.text.size() > kMostPieceBytes) throw MalformedSubwords{"a piece of more than 256 bytes"};
  if (text_problem(piece.text)) throw MalformedSubwords{"a piece with a NUL, or that is not UTF-8"};
  if (!(std::abs(piece.score) <= kLargestScore)) throw MalformedSubwords{"a score that is not a number, or too large"};
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
      throw MalformedSubwords{"more than 64 user-defined pieces of which each begins with the one before"};
    }
  }
}

/// Throws if many pieces fall into one place of a std::unordered_map, as which the library keeps those that text may
/// hold, and the others: it would take a time with the square of their number, in a map that grows or one that has room
/// at once.
void check_hashes(const std::vector<SubwordPiece>& pieces) {
  std::vector<std::string_view> texts[2];
  for (const SubwordPiece& piece : pieces) {
    const bool of_text = piece.type == SubwordType::kNormal || piece.type == SubwordType::kUserDefined ||
                         piece.type == SubwordType::kUnused;
    texts[of_text ? 0 : 1].push_back(piece.text);
  }
  for (const auto& kept : texts) {
    for (const bool has_room : {false, true}) {
      std::unordered_set<std::string_view> map;
      if (has_room) map.reserve(kept.size());
      const auto check = [&map](std::size_t place) {
        if (map.bucket_size(place) > kMostOfOneHash) throw MalformedSubwords{"more than 64 pieces of one hash"};
      };
      for (const std::string_view text : kept) {
        map.insert(text);
        check(map.bucket(text));
      }
      for (std::size_t place = 0; place < map.bucket_count(); ++place) check(place);
    }
  }
}

void read_trainer(std::string_view bytes, SubwordProto& proto) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 3) {
      require_form(field, Form::kNumber);
      constexpr const char* kKinds[] = {"unigram", "bpe", "word", "char"};
      if (field.value < 1 || field.value > 4) throw MalformedSubwords{"a model of no known kind"};
      proto.kind = kKinds[field.value - 1];
    }
    if (field.number == 35) {
      require_form(field, Form::kNumber);
      proto.byte_fallback = field.value != 0;
    }
    if (field.number == 44 && field.bytes.size() > kMostUnknownBytes) {
      throw MalformedSubwords{"a long text for unknown tokens"};
    }
  }
}

void read_normaliser(std::string_view bytes, SubwordProto& proto) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 2) {
      require_form(field, Form::kBytes);
      proto.table = SubwordTable(field.bytes);
    } else if (field.number == 5) {
      require_form(field, Form::kNumber);
      proto.escapes_spaces = field.value != 0;
    }
  }
}

}  // namespace

SubwordProto read_subword_proto(std::string_view bytes, const std::string& name) {
  try {
    SubwordProto proto, denormaliser;
    if (bytes.size() > kMostSubwordBytes) throw MalformedSubwords{"it is longer than any"};
    Message message(bytes);
    for (Field field; message.next(field);) {
      if (field.number <= 5) require_form(field, Form::kBytes);
      if (field.number == 1) proto.pieces.push_back(read_piece(field.bytes));
      if (field.number == 2) read_trainer(field.bytes, proto);
      if (field.number == 3) read_normaliser(field.bytes, proto);
      if (field.number == 5) read_normaliser(field.bytes, denormaliser);
    }
    if (proto.pieces.empty()) throw MalformedSubwords{"it has no pieces"};
    check_user_defined(proto.pieces);
    check_hashes(proto.pieces);
    return proto;
  } catch (const MalformedSubwords& problem) {
    throw DataError(fmt::format("{}: not a SentencePiece model ({}); give a .model file that SentencePiece wrote", name,
                                problem.what));
  }
}

std::string without_self_test(std::string_view bytes) {
  std::string rest;
  rest.reserve(bytes.size());
  Message message(bytes);
  std::size_t begin = 0;
  for (Field field; message.next(field);) {
    const std::size_t end = bytes.size() - message.left();
    if (field.number != 4) rest += bytes.substr(begin, end - begin);
    begin = end;
  }
  return rest;
}

}  // namespace weft

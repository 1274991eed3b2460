// split() and join() run the same Spacing over the same cores (tokens without marks) and the same real
// spaces, so they always agree on the default; split() marks where the text differs from it, join() obeys the
// marks.
#include "weft/data/word_tokenizer.h"

#include <array>
#include <optional>

#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr std::string_view kGlued = "\xEF\xBF\xAD";   // U+FFED
constexpr std::string_view kSpaced = "\xE2\x96\x81";  // U+2581

bool is_mark(char32_t value) { return value == U'\uFFED' || value == U'\u2581'; }
bool is_apostrophe(char32_t value) { return value == U'\'' || value == U'\u2019'; }
bool is_hyphen(char32_t value) { return value == U'-' || value == U'\u2010' || value == U'\u2011'; }
bool is_alphanumeric(char32_t value) { return is_letter(value) || is_number(value); }
bool is_word(char32_t value) { return !is_space(value) && !is_mark(value) && !is_symbol(value); }
bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A part of a normalised text that becomes one token.
struct Piece {
  std::string_view text;
  bool spaced;  // whether a space comes before it
  bool symbol;  // punctuation or symbol: may carry a mark at its end
};

// ---- Words ----

struct Apostrophe {
  std::size_t begin, end;
};

std::optional<Apostrophe> last_apostrophe(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;) {
    if (text[at] == '\'') return Apostrophe{at, at + 1};
    if (text.substr(at, 3) == "\xE2\x80\x99") return Apostrophe{at, at + 3};
  }
  return std::nullopt;
}

bool equal_without_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((is_ascii_letter(text[i]) ? text[i] | 0x20 : text[i]) != lower[i]) return false;
  }
  return true;
}

// The bytes at the end of a word that are an English clitic: n't, 's, 'm, 'd, 're, 've, 'll; else 0.
std::size_t clitic_length(std::string_view word) {
  const auto apostrophe = last_apostrophe(word);
  if (!apostrophe) return 0;
  const std::size_t begin = apostrophe->begin;
  const std::string_view rest = word.substr(apostrophe->end);
  if (equal_without_case(rest, "t") && begin > 0 && (word[begin - 1] | 0x20) == 'n') {
    return word.size() - begin + 1;
  }
  for (const char* clitic : {"s", "m", "d", "re", "ve", "ll"}) {
    if (equal_without_case(rest, clitic)) return word.size() - begin;
  }
  return 0;
}

// Cuts clitics off the end of a word, and the rest after each apostrophe within it.
void split_word(std::string_view word, bool spaced, std::vector<Piece>& pieces) {
  std::vector<std::string_view> clitics;
  while (const std::size_t length = clitic_length(word)) {
    if (length == word.size()) break;
    clitics.push_back(word.substr(word.size() - length));
    word.remove_suffix(length);
  }
  std::size_t begin = 0;
  for (std::size_t at = 0; at < word.size();) {
    const CodePoint point = code_point_at(word, at);
    at += point.length;
    if (is_apostrophe(point.value) || at == word.size()) {
      pieces.push_back({word.substr(begin, at - begin), spaced, false});
      spaced = false;
      begin = at;
    }
  }
  while (!clitics.empty()) {
    pieces.push_back({clitics.back(), false, false});
    clitics.pop_back();
  }
}

// ---- Pieces ----

// The end of the character at `at`, with its combining marks; a mark character stands alone.
std::size_t piece_character_end(std::string_view text, std::size_t at) {
  const CodePoint first = code_point_at(text, at);
  if (is_mark(first.value)) return at + first.length;
  const std::size_t end = cluster_end(text, at);
  for (std::size_t next = at + first.length; next < end;) {
    const CodePoint point = code_point_at(text, next);
    if (is_mark(point.value) || is_space(point.value)) return next;
    next += point.length;
  }
  return end;
}

// Whether `joiner`, between these characters, is inside a word or number.
bool joins(char32_t before, char32_t joiner, char32_t after) {
  if (is_hyphen(joiner)) return is_alphanumeric(before) && is_alphanumeric(after);
  if (is_apostrophe(joiner)) {
    return (is_letter(before) && is_alphanumeric(after)) || (is_number(before) && is_letter(after));
  }
  return (joiner == U'.' || joiner == U',') && is_number(before) && is_number(after);
}

std::size_t word_end(std::string_view text, std::size_t at) {
  char32_t before = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (!is_word(point.value)) {
      const std::size_t next = at + point.length;
      if (next == text.size() || !joins(before, point.value, code_point_at(text, next).value)) break;
    }
    before = point.value;
    at = piece_character_end(text, at);
  }
  return at;
}

std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  bool spaced = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t value = code_point_at(text, at).value;
    const std::size_t begin = at;
    if (value == U' ') {
      spaced = true;
      ++at;
      continue;
    }
    if (is_word(value)) {
      at = word_end(text, at);
      split_word(text.substr(begin, at - begin), spaced, pieces);
    } else {
      at = piece_character_end(text, at);
      pieces.push_back({text.substr(begin, at - begin), spaced, true});
    }
    spaced = false;
  }
  return pieces;
}

// ---- Spacing ----

enum class Sides { kNone, kBefore, kAfter, kBoth, kQuote };  // where a space stands by default

Sides sides_of(std::string_view core) {
  const CodePoint first = code_point_at(core, 0);
  if (first.length < core.size()) {
    if (clitic_length(core) == core.size()) return Sides::kAfter;
    const auto apostrophe = last_apostrophe(core);
    return apostrophe && apostrophe->end == core.size() ? Sides::kBefore : Sides::kBoth;
  }
  const auto is_one_of = [&first](std::u32string_view set) { return set.find(first.value) != set.npos; };
  if (is_one_of(U".,;:?!%)]}\u2026\u2030\u2019\u201D")) return Sides::kAfter;
  if (is_one_of(U"([{#$\u00A1\u00A3\u00BF\u2018\u201C\u201E\u20AC")) return Sides::kBefore;
  if (is_one_of(U"/\\_@\u00B0")) return Sides::kNone;
  if (is_one_of(U"\"'")) return Sides::kQuote;
  return Sides::kBoth;
}

// Walks over the cores of a line and says where a space stands by default.
class Spacing {
 public:
  bool space_before(std::string_view core) const {
    if (glue_next_) return false;
    const Sides sides = sides_of(core);
    return sides == Sides::kQuote ? !open(core) : sides == Sides::kBefore || sides == Sides::kBoth;
  }

  // Goes on to the next core; `spaced` says whether there really is a space before this one.
  void step(std::string_view core, bool spaced) {
    const Sides sides = sides_of(core);
    if (sides == Sides::kQuote) {
      open(core) = spaced || (glue_next_ && !open(core));  // one stuck to the end of a word closes
      glue_next_ = open(core);
    } else {
      glue_next_ = sides == Sides::kNone || sides == Sides::kBefore;
    }
  }

 private:
  bool& open(std::string_view quote) { return open_[quote[0] == '"' ? 0 : 1]; }
  bool open(std::string_view quote) const { return open_[quote[0] == '"' ? 0 : 1]; }

  std::array<bool, 2> open_ = {false, false};
  bool glue_next_ = true;
};

// ---- Marks ----

// A token taken apart; nothing where there is no mark.
struct Marked {
  std::string_view core;
  std::optional<bool> space_before, space_after;
};

std::optional<bool> mark_of(std::string_view text) {
  if (text == kGlued) return false;
  if (text == kSpaced) return true;
  return std::nullopt;
}

Marked read_marks(std::string_view token) {
  static_assert(kGlued.size() == kSpaced.size());
  constexpr std::size_t kLength = kGlued.size();
  Marked marked{token, std::nullopt, std::nullopt};
  if (marked.core.size() > kLength) {
    marked.space_before = mark_of(token.substr(0, kLength));
    if (marked.space_before) marked.core.remove_prefix(kLength);
  }
  if (marked.core.size() > kLength) {
    marked.space_after = mark_of(marked.core.substr(marked.core.size() - kLength));
    if (marked.space_after) marked.core.remove_suffix(kLength);
  }
  return marked;
}

}  // namespace

std::vector<std::string> WordTokenizer::split(std::string_view line) const {
  const std::string text = normalise(line);
  const std::vector<Piece> pieces = pieces_of(text);
  std::vector<std::string> tokens;
  tokens.reserve(pieces.size());
  Spacing spacing;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    std::string token;
    if (spacing.space_before(piece.text) != piece.spaced) {
      const std::string_view mark = piece.spaced ? kSpaced : kGlued;
      // Between punctuation and a word, the mark goes to the punctuation, which keeps the vocabulary small.
      if (!piece.symbol && pieces[i - 1].symbol && !mark_of(pieces[i - 1].text)) {
        tokens.back() += mark;
      } else {
        token = mark;
      }
    }
    tokens.push_back(token.append(piece.text));
    spacing.step(piece.text, piece.spaced);
  }
  return tokens;
}

std::string WordTokenizer::join(std::span<const std::string> tokens) const {
  std::string line;
  Spacing spacing;
  std::optional<bool> space_after;
  for (const std::string& token : tokens) {
    if (token.empty()) continue;
    const Marked marked = read_marks(token);
    const bool spaced = !line.empty() && (marked.space_before ? *marked.space_before
                                          : space_after       ? *space_after
                                                              : spacing.space_before(marked.core));
    if (spaced) line += ' ';
    line += marked.core;
    spacing.step(marked.core, spaced);
    space_after = marked.space_after;
  }
  return line;
}

}  // namespace weft

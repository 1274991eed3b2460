#include "weft/train/score_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr std::string_view kTokenizers[] = {"13a", "none", "char", "zh"};  // in the order of BleuTokenizer

// What sacreBLEU's zh tokenizer takes for Chinese. Its table means to hold two planes above U+FFFF, but as
// written these compare as U+2001 to U+2A6D, General Punctuation included, and characters above U+FFFF belong
// to no range. Equal scores are worth more than a better table.
constexpr CodePointRange kChinese[] = {{0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F},
                                       {0x31A0, 0x31EF}, {0x3200, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
                                       {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F},
                                       {0xFF00, 0xFFEF}};

bool is_chinese(char32_t value) { return in_ranges(kChinese, value); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

/// The ASCII punctuation that always stands alone: all but apostrophe, comma, hyphen and full stop.
bool stands_alone(char c) {
  return (c >= '!' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Bytes of the white space that `s` starts with, or 0. White space is what Python's str.split() takes for
/// it.
std::size_t space_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned a = byte(0), b = byte(1), c = byte(2);
  if ((a >= 0x09 && a <= 0x0D) || (a >= 0x1C && a <= 0x20)) return 1;
  if (a == 0xC2 && (b == 0x85 || b == 0xA0)) return 2;
  const bool wide = (a == 0xE1 && b == 0x9A && c == 0x80) ||  // U+1680
                    (a == 0xE2 && b == 0x80 && ((c >= 0x80 && c <= 0x8A) || c == 0xA8 || c == 0xA9 || c == 0xAF)) ||
                    (a == 0xE2 && b == 0x81 && c == 0x9F) ||  // U+205F
                    (a == 0xE3 && b == 0x80 && c == 0x80);    // U+3000
  return wide ? 3 : 0;
}

/// Replaces every occurrence, in a time that grows with the text alone.
void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t found = text.find(from);
  if (found == text.npos) return;
  std::string result;
  std::size_t at = 0;
  for (; found != text.npos; found = text.find(from, at)) {
    result.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  result.append(text, at);
  text = std::move(result);
}

std::string_view trim_end(std::string_view line) {
  for (bool more = true; more;) {
    more = false;
    for (const std::size_t size : {1u, 2u, 3u}) {
      if (line.size() >= size && space_length(line.substr(line.size() - size)) == size) {
        line.remove_suffix(size);
        more = true;
        break;
      }
    }
  }
  return line;
}

std::string_view trim(std::string_view line) {
  line = trim_end(line);
  while (const std::size_t size = line.empty() ? 0 : space_length(line)) line.remove_prefix(size);
  return line;
}

/// Puts spaces around punctuation. Each pass reads what the one before wrote, left to right, as mteval's
/// substitutions do; a pass over pairs steps over both characters of a pair that it changed. Its rules speak
/// of ASCII alone, so it works on bytes: no byte of a longer UTF-8 sequence is ASCII.
std::string space_out(std::string text) {
  std::string alone;
  for (const char c : text) {
    if (stands_alone(c)) {
      alone += {' ', c, ' '};
    } else {
      alone += c;
    }
  }
  text = std::move(alone);

  const auto pass = [&text](auto matches, std::string_view before, std::string_view between, std::string_view after) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
        out.append(before).append(1, text[i]).append(between).append(1, text[i + 1]).append(after);
        ++i;
      } else {
        out += text[i];
      }
    }
    text = std::move(out);
  };
  pass([](char a, char b) { return !is_digit(a) && is_point(b); }, "", " ", " ");
  pass([](char a, char b) { return is_point(a) && !is_digit(b); }, " ", " ", "");
  pass([](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
  return text;
}

/// Undoes what mteval-v13a takes for markup, and puts a space around the line.
std::string without_markup(std::string_view line) {
  std::string text(1, ' ');
  text.append(line).append(1, ' ');
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  return text;
}

/// Calls what(code point, its bytes) for each code point of a line.
template <class What>
void for_each_code_point(std::string_view line, What what) {
  for (std::size_t at = 0; at < line.size();) {
    const CodePoint point = code_point_at(line, at);
    what(point.value, line.substr(at, point.length));
    at += point.length;
  }
}

}  // namespace

BleuTokenizer bleu_tokenizer(std::string_view name) {
  const auto found = std::find(std::begin(kTokenizers), std::end(kTokenizers), name);
  if (found == std::end(kTokenizers)) {
    throw ConfigError(fmt::format("\"{}\" is not a tokenizer of BLEU; must be 13a, none, char or zh{}", name,
                                  suggestion(name, {std::begin(kTokenizers), std::end(kTokenizers)})));
  }
  return static_cast<BleuTokenizer>(found - std::begin(kTokenizers));
}

std::string_view name_of(BleuTokenizer tokenizer) { return kTokenizers[static_cast<std::size_t>(tokenizer)]; }

void for_each_word(std::string_view line, FunctionRef<void(std::string_view)> take) {
  std::size_t begin = 0, at = 0;
  while (at < line.size()) {
    const std::size_t space = space_length(line.substr(at));
    if (space == 0) {
      ++at;
      continue;
    }
    if (at > begin) take(line.substr(begin, at - begin));
    at += space;
    begin = at;
  }
  if (at > begin) take(line.substr(begin, at - begin));
}

void for_each_bleu_word(std::string_view line, BleuTokenizer tokenizer, FunctionRef<void(std::string_view)> take) {
  line = trim_end(line);
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return for_each_word(space_out(without_markup(line)), take);
    case BleuTokenizer::kZh: {
      std::string text;
      for_each_code_point(trim(line), [&](char32_t value, std::string_view bytes) {
        const std::string_view around = is_chinese(value) ? " " : "";
        text.append(around).append(bytes).append(around);
      });
      return for_each_word(space_out(std::move(text)), take);
    }
    case BleuTokenizer::kChar:
      return for_each_word(line, [&](std::string_view word) {
        for_each_code_point(word, [&](char32_t, std::string_view bytes) { take(bytes); });
      });
    case BleuTokenizer::kNone:
      return for_each_word(line, take);
  }
}

std::vector<std::string> bleu_tokenize(std::string_view line, BleuTokenizer tokenizer) {
  std::vector<std::string> words;
  for_each_bleu_word(line, tokenizer, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

}  // namespace weft

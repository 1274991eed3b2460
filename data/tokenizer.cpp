#include "weft/data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/subword_tokenizer.h"
#include "weft/data/utf8.h"
#include "weft/data/vocabulary.h"
#include "weft/data/word_tokenizer.h"

namespace weft {
namespace {

class WhitespaceTokenizer : public Tokenizer {
 public:
  explicit WhitespaceTokenizer(bool lowercase) : lowercase_(lowercase) {}

  std::vector<std::string> split(std::string_view line) const override {
    const std::string text = normalise(line);
    std::vector<std::string> tokens;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      std::string token = text.substr(begin, end - begin);
      if (is_special_token(token) || token.starts_with(kTokenEscape)) token.insert(0, kTokenEscape);
      tokens.push_back(std::move(token));
      begin = end + 1;
    }
    return tokens;
  }

  std::string join(std::span<const std::string> tokens) const override {
    std::string line;
    for (const std::string& token : tokens) {
      if (!line.empty()) line += ' ';
      line += std::string_view(token).substr(token.starts_with(kTokenEscape) ? kTokenEscape.size() : 0);
    }
    return line;
  }

  std::string normalise(std::string_view line) const override { return normalise_text(line, lowercase_); }

 private:
  bool lowercase_;
};

class CharacterTokenizer : public Tokenizer {
 public:
  explicit CharacterTokenizer(bool lowercase) : lowercase_(lowercase) {}

  std::vector<std::string> split(std::string_view line) const override {
    const std::string text = normalise(line);
    std::vector<std::string> tokens;
    tokens.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view point = std::string_view(text).substr(at, code_point_at(text, at).length);
      at += point.size();
      tokens.emplace_back(point == " " ? kVisibleSpace : point);
      if (point == kVisibleSpace) tokens.back().insert(0, kTokenEscape);
    }
    return tokens;
  }

  std::string join(std::span<const std::string> tokens) const override {
    std::string line;
    for (const std::string& token : tokens) {
      if (token == kVisibleSpace) {
        line += ' ';
      } else {
        const bool escaped = token.size() > kTokenEscape.size() && token.starts_with(kTokenEscape);
        line += std::string_view(token).substr(escaped ? kTokenEscape.size() : 0);
      }
    }
    return line;
  }

  std::string normalise(std::string_view line) const override { return normalise_text(line, lowercase_); }

 private:
  bool lowercase_;
};

}  // namespace

std::string normalise_text(std::string_view line, bool lowercase) {
  std::string text;
  text.reserve(line.size());
  bool space = false;
  for (std::size_t at = 0; at < line.size();) {
    const CodePoint point = code_point_at(line, at);
    if (is_space(point.value)) {
      space = !text.empty();
    } else {
      if (space) text += ' ';
      space = false;
      const char32_t lower = lowercase ? to_lower(point.value) : point.value;
      if (lower == point.value) {
        text += line.substr(at, point.length);
      } else {
        append_code_point(text, lower);
      }
    }
    at += point.length;
  }
  return text;
}

std::vector<std::string> Tokenizer::sample(std::string_view line, double, Random&) const { return split(line); }

bool uses_subwords(std::string_view tokenizer) { return tokenizer == "unigram" || tokenizer == "bpe"; }

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, bool lowercase,
                                          std::shared_ptr<const SubwordModel> subwords) {
  if (uses_subwords(name)) {
    if (subwords == nullptr || subwords->kind() != name) {
      throw ConfigError(fmt::format("tokenizer \"{}\" needs a subword model of this kind; the vocabulary has {}", name,
                                    subwords == nullptr ? "none" : "one of the kind " + subwords->kind()));
    }
    return std::make_unique<SubwordTokenizer>(std::move(subwords), lowercase);
  }
  if (name == "word") return std::make_unique<WordTokenizer>(lowercase);
  if (name == "whitespace") return std::make_unique<WhitespaceTokenizer>(lowercase);
  if (name == "character") return std::make_unique<CharacterTokenizer>(lowercase);
  throw ConfigError(
      fmt::format("tokenizer \"{}\" is not known; use one of word, whitespace, character, unigram, bpe", name));
}

}  // namespace weft

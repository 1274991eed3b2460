#include "weft/data/subword_tokenizer.h"

#include "weft/data/text_file.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

/// The escaped text with a space in every word that would be longer than kLongestSubwordWord for the model: of a run of
/// characters that a model does not know, SentencePiece takes time with the square.
std::string with_long_words_parted(std::string text, const SubwordTable& table) {
  if (text.size() * table.growth() <= kLongestSubwordWord) return text;
  std::string parted;
  std::size_t length = 0;  // of the word so far
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + code_point_at(text, at).length;
    if (std::string_view(text).substr(at).starts_with(kTokenEscape)) end += code_point_at(text, end).length;
    const bool space = text[at] == ' ';
    if (length >= kLongestSubwordWord && !space) {
      parted += ' ';
      length = 0;
    }
    length = space ? 0 : length + table.most_made(text, at, end);
    parted.append(text, at, end - at);
    at = end;
  }
  return parted;
}

/// The text as the model takes it: UTF-8 without NUL, single spaces, no U+2581.
std::string prepared(std::string_view line, bool lowercase, const SubwordModel& model) {
  Index replaced = 0;
  return with_long_words_parted(escape_for_subwords(normalise_text(replace_invalid_text(line, replaced), lowercase)),
                                model.table());
}

}  // namespace

std::string escape_for_subwords(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kTokenEscape)) {
      escaped.append(kTokenEscape).append(kTokenEscape);
      at += kTokenEscape.size();
    } else if (rest.starts_with(kVisibleSpace)) {
      escaped.append(kTokenEscape).append("_");
      at += kVisibleSpace.size();
    } else {
      escaped += text[at++];
    }
  }
  return escaped;
}

std::string unescape_from_subwords(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (!text.substr(at).starts_with(kTokenEscape)) {
      plain += text[at++];
      continue;
    }
    at += kTokenEscape.size();
    const std::string_view rest = text.substr(at);
    if (rest.starts_with('_')) {
      plain += kVisibleSpace;
      at += 1;
    } else {
      plain += kTokenEscape;
      if (rest.starts_with(kTokenEscape)) at += kTokenEscape.size();
    }
  }
  return plain;
}

std::vector<std::string> SubwordTokenizer::split(std::string_view line) const {
  return model_->split(prepared(line, lowercase_, *model_));
}

std::vector<std::string> SubwordTokenizer::sample(std::string_view line, double strength, Random& random) const {
  return model_->sample(prepared(line, lowercase_, *model_), strength, random);
}

std::string SubwordTokenizer::join(std::span<const std::string> tokens) const {
  // Bytes that a model writes may make a line break, or no UTF-8.
  Index replaced = 0;
  return normalise_text(replace_invalid_text(unescape_from_subwords(model_->join(tokens)), replaced), false);
}

}  // namespace weft

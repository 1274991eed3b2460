// Tokenizers: a line of text to tokens and back. The invariant of each is join(split(line)) ==
// normalise(line) for any bytes at all, where normalise changes nothing but spaces and, if asked, the case;
// so a model's text is never altered behind the user's back, and training and translation see the same rule.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class Random;
class SubwordModel;

/// The rule that all tokenizers of this file apply before anything else: a run of spaces of any kind (tabs
/// and no-break spaces too) becomes one space, outer spaces go, and with `lowercase` each code point becomes
/// its simple lower-case form. Nothing else changes: no NFC or NFKC, no quotes, no ellipsis, no zero-width
/// characters.
std::string normalise_text(std::string_view line, bool lowercase);

/// Splits lines into tokens and joins tokens into lines. May be called from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The tokens of a line: none of them empty, none that reads like a special of Vocabulary; a line of spaces
  /// has none.
  virtual std::vector<std::string> split(std::string_view line) const = 0;

  /// The tokens of a line, drawn at random from the ways to split it; split(line) where there is one way only. What
  /// `strength`, from 0 to 1, means is for the tokenizer to say: see SubwordSampler.
  virtual std::vector<std::string> sample(std::string_view line, double strength, Random& random) const;

  /// The line that splits into these tokens. Any tokens are accepted, as a model may write what no text
  /// splits into.
  virtual std::string join(std::span<const std::string> tokens) const = 0;

  /// What join(split(line)) gives back.
  virtual std::string normalise(std::string_view line) const = 0;
};

/// Makes a tokenizer by name:
/// - "word": words and punctuation apart, see word_tokenizer.cpp;
/// - "whitespace": what stands between spaces. A token that reads like a special of Vocabulary, or begins
///   with U+FFED, gets a U+FFED in front;
/// - "character": code points. A space is the token U+2581; a U+2581 of the text is the token U+FFED U+2581;
/// - "unigram" and "bpe": the pieces of `subwords`, a model of that kind, see subword_tokenizer.h.
/// Throws ConfigError for another name, or for a model that is missing or of another kind.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, bool lowercase,
                                          std::shared_ptr<const SubwordModel> subwords = nullptr);

/// Whether a tokenizer needs a subword model.
bool uses_subwords(std::string_view tokenizer);

}  // namespace weft

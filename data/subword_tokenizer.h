// The tokenizer of a subword model: normalise_text, then what the model makes of it.
#pragma once

#include <memory>
#include <utility>

#include "weft/data/subword_model.h"
#include "weft/data/tokenizer.h"

namespace weft {

inline constexpr std::string_view kTokenEscape = "\xEF\xBF\xAD";  ///< U+FFED

/// Replaces what SentencePiece cannot tell from a space: U+2581 becomes U+FFED "_", and U+FFED, to be told from that,
/// U+FFED U+FFED.
std::string escape_for_subwords(std::string_view text);

/// The inverse of escape_for_subwords; text that it cannot have made stays as it is.
std::string unescape_from_subwords(std::string_view text);

/// Cuts lines into the pieces of a model. A model that Weft trained changes nothing beyond normalise_text; another one
/// normalises as it was made to, and normalise() says what comes of it.
/// Words of more than kLongestSubwordWord bytes, once they are normalised, are parted by spaces.
class SubwordTokenizer : public Tokenizer {
 public:
  SubwordTokenizer(std::shared_ptr<const SubwordModel> model, bool lowercase)
      : model_(std::move(model)), lowercase_(lowercase) {}

  std::vector<std::string> split(std::string_view line) const override;
  std::vector<std::string> sample(std::string_view line, double strength, Random& random) const override;
  std::string join(std::span<const std::string> tokens) const override;
  std::string normalise(std::string_view line) const override { return join(split(line)); }

 private:
  std::shared_ptr<const SubwordModel> model_;
  bool lowercase_;
};

}  // namespace weft

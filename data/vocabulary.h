// Vocabularies: tokens and their ids. The specials have ids 0, 1 and 2 always, and no text ever gets one of
// them except kUnknown for a token that the vocabulary lacks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/core/types.h"

namespace weft {

class SubwordModel;

inline constexpr TokenId kUnknown = 0;  ///< Stands for any token that the vocabulary lacks.
inline constexpr TokenId kBegin = 1;    ///< Begins the decoder's input.
inline constexpr TokenId kEnd = 2;      ///< Ends a sentence.

/// How the specials are written, in the order of their ids.
inline constexpr std::array<std::string_view, 3> kSpecialTokens = {"<unk>", "<s>", "</s>"};

/// Whether a token is one of the special ones, by its text.
bool is_special_token(std::string_view token);

/// A hash of strings that lets a map of std::string be searched with a std::string_view. It is another one in each
/// process, so that no text can be made whose tokens all fall into the same place of a map.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const;
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// Counts how often tokens occur.
class TokenCounter {
 public:
  void add(std::span<const std::string> tokens);
  /// Adds all that another has counted.
  void add(const TokenCounter& other);

  /// How many different tokens were added.
  Index distinct() const { return static_cast<Index>(counts_.size()); }

  /// The tokens and their counts by falling count, ties in byte order.
  std::vector<std::pair<std::string, Index>> sorted() const;

 private:
  StringMap<Index> counts_;
};

/// Which tokens a vocabulary takes in.
struct VocabularyOptions {
  Index min_count = 1;  ///< Tokens that occur less often are left out; at least 1.
  Index max_size = 0;   ///< The largest size, specials included; 0 for no limit.
};

/// A two-way table of tokens and ids.
class Vocabulary {
 public:
  /// The specials, then the tokens by falling count, ties in byte order, as far as the options allow. The
  /// size is less than max_size when there are not as many tokens; size() is the number that counts. Throws
  /// ConfigError for options out of range, DataError if no token is left.
  static Vocabulary build(const TokenCounter& counter, const VocabularyOptions& options);

  /// The vocabulary with these entries, id 0 first; the inverse of tokens(). `name` is what errors call it.
  /// Throws DataError, with the entry's number from 1, unless the first three are the specials and the others
  /// are distinct UTF-8, not blank, and without line breaks and NUL.
  static Vocabulary from_tokens(std::vector<std::string> tokens, std::string_view name = "vocabulary");

  /// The vocabulary of a subword model, which it keeps; the entries are those of SubwordModel::tokens().
  static Vocabulary from_subwords(std::shared_ptr<const SubwordModel> model);

  /// The subword model that the entries come from, or null.
  const std::shared_ptr<const SubwordModel>& subwords() const { return subwords_; }

  /// The id of a token of text; kUnknown if it is not in the vocabulary or reads like a special.
  TokenId id(std::string_view token) const;

  /// The token of an id. Throws DataError if it is not in [0, size()).
  const std::string& token(TokenId id) const;

  std::vector<TokenId> ids(std::span<const std::string> tokens) const;
  std::vector<std::string> tokens(std::span<const TokenId> ids) const;

  /// All entries in the order of their ids.
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// The number of ids, specials included.
  Index size() const { return static_cast<Index>(tokens_.size()); }

  /// A number that two vocabularies share only if their entries, and the subword models behind them, are the same: 64-bit
  /// FNV-1a over both.
  std::uint64_t content_hash() const;

 private:
  std::vector<std::string> tokens_;
  StringMap<TokenId> ids_;  // without the specials
  std::shared_ptr<const SubwordModel> subwords_;
};

}  // namespace weft

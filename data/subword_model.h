// A SentencePiece model: the one owner of subwords, of which vocabulary and tokenizer are views. It never changes, so that
// any number of threads may use it.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/random.h"
#include "weft/core/types.h"
#include "weft/data/subword_proto.h"
#include "weft/data/subword_sampler.h"
#include "weft/data/vocabulary.h"

namespace weft {

inline constexpr std::string_view kVisibleSpace = "\xE2\x96\x81";  ///< U+2581, SentencePiece's sign of a space

/// Bytes of a word once it is normalised: the longest unknown one that takes a model no noticeable time.
inline constexpr std::size_t kLongestSubwordWord = 16'384;

/// A subword model of the kind "unigram" or "bpe".
class SubwordModel {
 public:
  /// Reads the bytes of a .model file; `name` is what errors call it. Throws DataError if they are not a model or one of
  /// another kind.
  static std::shared_ptr<const SubwordModel> load(std::string bytes, const std::string& name);
  /// The same for a file. Throws DataError too if it cannot be read or is not a regular file.
  static std::shared_ptr<const SubwordModel> load_file(const std::filesystem::path& path);
  ~SubwordModel();

  const std::string& bytes() const { return bytes_; }
  const std::string& kind() const { return proto_.kind; }
  /// What it does to a text before it cuts it.
  const SubwordTable& table() const { return proto_.table; }

  /// The entries of its vocabulary: the specials of Weft, then all other pieces in the order of their ids. In a model
  /// that Weft trained these are the pieces themselves. A piece that no text of Weft can hold (with white space, or
  /// that reads like a special without being one) stands there as U+FFED, "unused" and its id.
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// Cuts text into pieces; unknown characters stand as they are, a run of them as one token. The time grows with the
  /// square of such a run, so no word should be longer than kLongestSubwordWord. None of the tokens reads like a special.
  /// Throws DataError if SentencePiece gives up on the text, as it does with some models that nobody trained.
  std::vector<std::string> split(std::string_view text) const;

  /// The same with the segmentation drawn at random; see SubwordSampler. User-defined pieces and bytes stay whole.
  std::vector<std::string> sample(std::string_view text, double strength, Random& random) const;

  /// The text of any tokens.
  std::string join(std::span<const std::string> tokens) const;

 private:
  struct Processor;
  SubwordModel(std::string bytes, const std::string& name);
  bool knows_spaces() const;
  std::vector<std::string_view> parts(std::string_view text) const;
  template <class Normal, class Other>
  void encode(std::string_view text, Normal normal, Other other) const;

  std::string bytes_;
  SubwordProto proto_;
  std::unique_ptr<Processor> processor_;
  SubwordSampler sampler_;
  std::string unknown_;  // the piece
  std::vector<std::string> tokens_;
  std::vector<bool> stands_;                   // whether a piece, by its id in the model, is in tokens_ as it is
  std::set<std::string, std::less<>> unused_;  // the entries of tokens_ that stand for other pieces
};

/// Makes SentencePiece write no messages of its own, from now on.
void silence_sentencepiece();

}  // namespace weft

// Random segmentations into subwords. What is drawn depends on the pieces, the text and the generator alone; SentencePiece's
// own sampling draws from a generator of each thread and so cannot be repeated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/core/random.h"
#include "weft/data/subword_proto.h"
#include "weft/data/vocabulary.h"

namespace weft {

/// Draws segmentations of text into the normal pieces of a model.
class SubwordSampler {
 public:
  /// Takes the pieces of a "unigram" or "bpe" model that are of the type kNormal.
  explicit SubwordSampler(const SubwordProto& model);

  /// Appends one segmentation of `text`, which must be a concatenation of normal pieces, to `tokens`.
  ///
  /// A unigram model draws a segmentation with a probability proportional to P(segmentation)^strength: Kudo 2018,
  /// "Subword Regularization", section 3.2 with l infinite. A bpe model leaves out each merge with probability
  /// `strength`: Provilkov et al. 2020, "BPE-Dropout", section 3, as SentencePiece does it: a merge that was left out is
  /// not tried again, so that text without spaces is cut as much as words are. 0 gives the model's own segmentation.
  void sample(std::string_view text, double strength, Random& random, std::vector<std::string>& tokens) const;

 private:
  void sample_unigram(std::string_view text, double strength, Random& random, std::vector<std::string>& tokens) const;
  void sample_bpe(std::string_view text, double dropout, Random& random, std::vector<std::string>& tokens) const;

  bool is_bpe_;
  StringMap<float> scores_;  // of bpe
  // Of unigram: the edges of a trie of bytes, and for each node the score of the piece that ends there, or NaN.
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<float> node_scores_;
};

}  // namespace weft

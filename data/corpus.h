// Sentence pairs as token ids, in two flat arrays, so that many millions of pairs fit. source[i] and
// target[i] always translate each other, and neither is empty.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/core/ragged.h"
#include "weft/core/types.h"
#include "weft/data/parallel_reader.h"
#include "weft/data/parallel_text.h"
#include "weft/data/tokenizer.h"
#include "weft/data/vocabulary.h"

namespace weft {

/// Sentences as token ids without specials, laid end to end.
struct EncodedText {
  std::vector<TokenId> tokens;
  Ragged rows;  ///< Which tokens each sentence owns.

  Index sentences() const { return rows.sequences(); }
  Index length(Index sentence) const { return rows.length(sentence); }
  std::span<const TokenId> operator[](Index sentence) const {
    return {tokens.data() + rows.begin(sentence), static_cast<std::size_t>(rows.length(sentence))};
  }
  void append(std::span<const TokenId> sentence) {
    tokens.insert(tokens.end(), sentence.begin(), sentence.end());
    rows.append(static_cast<Index>(sentence.size()));
  }
  /// Gives back the room for further sentences, which may be as much as there is.
  void shrink() {
    tokens.shrink_to_fit();
    rows.shrink();
  }
};

/// An encoded parallel corpus.
struct Corpus {
  EncodedText source, target;
  std::vector<Index> line;  ///< Where each pair is in the ParallelText, from 0; rising.

  Index size() const { return static_cast<Index>(line.size()); }
};

/// What became of the pairs of a ParallelText.
struct CorpusReport {
  Index pairs = 0;
  Index kept = 0;
  Index blank = 0;          ///< Dropped because a side is blank.
  Index too_long = 0;       ///< Dropped because a side has more tokens than max_length.
  Index source_tokens = 0;  ///< In the pairs that were kept, without specials.
  Index target_tokens = 0;
  Index source_unknown = 0;  ///< Those of source_tokens that the vocabulary lacks.
  Index target_unknown = 0;
  ShortLines short_lines;  ///< Lines of TSV files that are no pairs; not counted in the others.

  /// One line for people: what was kept and dropped, and the shares of unknown tokens.
  std::string summary() const;
};

/// How the text of one language becomes token ids. Both parts must outlive it.
struct TextEncoder {
  const Tokenizer& tokenizer;
  const Vocabulary& vocabulary;
};

/// A corpus, and what became of the text it was made of.
struct EncodedCorpus {
  Corpus corpus;
  CorpusReport report;
};

/// Encodes a text that comes in blocks, so that the text itself is never held whole. Pairs whose sides are not blank and
/// have at most `max_length` tokens each (specials not counted) stay; others are dropped as a whole and counted.
class CorpusEncoder {
 public:
  /// `name` is what errors call the text.
  CorpusEncoder(const TextEncoder& source, const TextEncoder& target, Index max_length, std::string name);

  /// Throws DataError if the sides differ in size.
  void add(const ParallelText& block);

  /// Everything that was added; the encoder is empty then. Throws DataError if no pair is left, unless pairs were too long
  /// and `may_lose_all` says that it matters not.
  EncodedCorpus finish(bool may_lose_all = false);

 private:
  TextEncoder source_, target_;
  Index max_length_;
  std::string name_;
  EncodedCorpus result_;
};

/// Encodes a text that is at hand, as a CorpusEncoder does.
EncodedCorpus encode_corpus(const ParallelText& text, const TextEncoder& source, const TextEncoder& target,
                            Index max_length, const std::string& name, bool may_lose_all = false);

/// Counts the tokens of lines, for Vocabulary::build.
void count_tokens(std::span<const std::string> lines, const Tokenizer& tokenizer, TokenCounter& counter);

}  // namespace weft

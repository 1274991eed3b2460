#include "weft/train/search.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "weft/core/kernels.h"
#include "weft/data/vocabulary.h"
#include "weft/train/decode_rules.h"

namespace weft {
namespace {

/// One way to go on from a row.
struct Continuation {
  Index row;
  TokenId token;
  double log_probability;
};

bool better(const Continuation& a, const Continuation& b) {
  return std::tuple(-a.log_probability, a.row, a.token) < std::tuple(-b.log_probability, b.row, b.token);
}

bool better_hypothesis(const Hypothesis& a, const Hypothesis& b) {
  return a.score != b.score ? a.score > b.score : a.tokens < b.tokens;
}

/// The search for one sentence.
struct Sentence {
  Index limit = 0;                   // the most tokens of a result, without </s>
  std::vector<double> rows;          // log-probability of each row kept, in the order of the rows
  std::vector<Continuation> next;    // what they become
  std::vector<Hypothesis> finished;  // sorted, at most n_best
};

/// Whether the sentence's rows, of `length` tokens, could still lead to a result that belongs among the n_best: see the
/// proof in search.h.
bool can_improve(const Sentence& sentence, Index length, const SearchOptions& options) {
  if (sentence.rows.empty()) return false;
  if (static_cast<Index>(sentence.finished.size()) < options.n_best) return true;
  const double best = *std::max_element(sentence.rows.begin(), sentence.rows.end());
  const double penalty = std::max(length_penalty(length + 1, options.length_penalty),
                                  length_penalty(sentence.limit + 1, options.length_penalty));
  return best / penalty > sentence.finished.back().score;
}

/// Adds a continuation to `best`, a sorted list of at most `beam`.
void keep(const Continuation& one, Index beam, std::vector<Continuation>& best) {
  if (static_cast<Index>(best.size()) == beam) {
    if (!better(one, best.back())) return;
    best.pop_back();
  }
  best.insert(std::upper_bound(best.begin(), best.end(), one, better), one);
}

/// What no_repeat_ngram forbids in each row; nothing at all if it is 0.
class Repeats {
 public:
  Repeats(const EnsembleDecoder& decoder, Index rows, Index n) {
    if (n == 0) return;
    for (Index row = 0; row < rows; ++row) tokens_.push_back(repeating_tokens(decoder.prefix(row), n));
  }
  bool forbid(Index row, TokenId token) const {
    if (tokens_.empty()) return false;
    const auto& tokens = tokens_[static_cast<std::size_t>(row)];
    return std::binary_search(tokens.begin(), tokens.end(), token);
  }
  /// The most that is forbidden in a row.
  Index most() const {
    std::size_t most = 0;
    for (const auto& tokens : tokens_) most = std::max(most, tokens.size());
    return static_cast<Index>(most);
  }

 private:
  std::vector<std::vector<TokenId>> tokens_;
};

}  // namespace

double length_penalty(Index length, double alpha) { return std::pow((5 + static_cast<double>(length)) / 6, alpha); }

std::vector<std::vector<Hypothesis>> search(TransformerSpan models, std::span<const TokenId> source,
                                            const Ragged& source_rows, const SearchOptions& options) {
  static_assert(kUnknown < kEnd && kBegin < kEnd, "the search for tokens begins at </s>");
  EnsembleDecoder decoder(models, source, source_rows);
  const Index count = source_rows.sequences(), vocabulary = decoder.vocabulary();

  const auto alone = models.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;

  std::vector<Sentence> sentences(static_cast<std::size_t>(count));
  std::vector<Index> parents;
  std::vector<TokenId> tokens(static_cast<std::size_t>(count), kBegin);
  std::vector<TokenId> best;  // [row][width]
  std::vector<real> log_sums;
  Ragged rows;
  for (Index s = 0; s < count; ++s) {
    Sentence& sentence = sentences[static_cast<std::size_t>(s)];
    sentence.limit = length_limit(source_rows.length(s) - 1, max_length(models), options);
    sentence.rows = {0};
    rows.append(1);
  }

  for (Index length = 0; !tokens.empty(); ++length) {  // every row has `length` tokens
    decoder.advance(parents, tokens, rows);
    const Tensor logits = decoder.next_logits();
    const Repeats repeats(decoder, rows.rows(), options.no_repeat_ngram);
    const Index width = std::min(options.beam + repeats.most(), vocabulary);  // continuations looked at for each row
    const Index first = length < options.min_length ? kEnd + 1 : kEnd;
    best.resize(static_cast<std::size_t>(rows.rows() * width));
    log_sums.resize(static_cast<std::size_t>(rows.rows()));
    best_columns(rows.rows(), vocabulary, logits.data(), first, width, best.data(), log_sums.data());
    require_numbers(log_sums, alone);
    for (Index s = 0; s < count; ++s) {
      Sentence& sentence = sentences[static_cast<std::size_t>(s)];
      sentence.next.clear();
      for (Index row = rows.begin(s); row < rows.end(s); ++row) {
        const double past = sentence.rows[static_cast<std::size_t>(row - rows.begin(s))];
        const auto add = [&](TokenId token) {
          const real log_probability =
              logits.data()[row * vocabulary + token] - log_sums[static_cast<std::size_t>(row)];
          keep({row, token, past + std::min<double>(static_cast<double>(log_probability), 0)}, options.beam,
               sentence.next);
        };
        bool any = false;
        const auto add_if_allowed = [&](TokenId token) {
          if (token < 0 || repeats.forbid(row, token)) return;
          add(token);
          any = true;
        };
        if (length < sentence.limit) {
          for (Index i = row * width; i < (row + 1) * width; ++i) add_if_allowed(best[static_cast<std::size_t>(i)]);
          if (options.allow_unknown) add_if_allowed(kUnknown);
        }
        if (!any) add(kEnd);
      }
    }

    parents.clear();
    tokens.clear();
    Ragged next_rows;
    for (Sentence& sentence : sentences) {
      sentence.rows.clear();
      for (const Continuation& one : sentence.next) {
        if (one.token != kEnd) {
          sentence.rows.push_back(one.log_probability);
          continue;
        }
        sentence.finished.push_back({decoder.prefix(one.row), one.log_probability,
                                     one.log_probability / length_penalty(length + 1, options.length_penalty)});
      }
      std::sort(sentence.finished.begin(), sentence.finished.end(), better_hypothesis);
      if (static_cast<Index>(sentence.finished.size()) > options.n_best) {
        sentence.finished.resize(static_cast<std::size_t>(options.n_best));
      }
      if (!can_improve(sentence, length + 1, options)) sentence.rows.clear();
      next_rows.append(static_cast<Index>(sentence.rows.size()));
      if (sentence.rows.empty()) continue;
      for (const Continuation& one : sentence.next) {
        if (one.token == kEnd) continue;
        parents.push_back(one.row);
        tokens.push_back(one.token);
      }
    }
    rows = std::move(next_rows);
  }

  std::vector<std::vector<Hypothesis>> results;
  results.reserve(sentences.size());
  for (Sentence& sentence : sentences) results.push_back(std::move(sentence.finished));
  return results;
}

std::vector<std::vector<Hypothesis>> search(const Transformer& model, std::span<const TokenId> source,
                                            const Ragged& source_rows, const SearchOptions& options) {
  const Transformer* const models[] = {&model};
  return search(models, source, source_rows, options);
}

}  // namespace weft

#include "weft/train/memory_text.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "weft/train/drawn_sample.h"

namespace weft {
namespace {

Index tokens_of(const Corpus& corpus) {
  return static_cast<Index>(corpus.source.tokens.size() + corpus.target.tokens.size());
}

/// What data.subword_sampling takes for a training text, beside its ids.
struct DrawnText {
  double lines = 0;  ///< as strings, to draw from
  double more = 0;   ///< ids that are drawn for an epoch, beyond those of the text itself
};

DrawnText drawn_text(const TranslationModel& model, const Corpus& train) {
  if (model.config().data.subword_sampling == 0) return {};
  constexpr Index kString = sizeof(std::string) + 16;  // and what the heap adds
  const DrawnSample sample = draw_sample(model, train, 0);
  const auto lines = static_cast<double>(sample.line_bytes + 2 * kString * sample.drawn.size()),
             more = static_cast<double>(tokens_of(sample.drawn) - sample.plain_tokens);
  return {lines / sample.share, more * sizeof(TokenId) / sample.share};
}

}  // namespace

Index corpus_bytes(const Corpus& corpus) {
  return tokens_of(corpus) * static_cast<Index>(sizeof(TokenId)) +
         3 * corpus.size() * static_cast<Index>(sizeof(Index));
}

Index held_text_bytes(const TranslationModel& model, const Corpus& train) {
  return corpus_bytes(train) + static_cast<Index>(drawn_text(model, train).lines);
}

Index text_bytes(const TranslationModel& model, const Corpus& train, double tokens, Index batch_tokens) {
  const DrawnText text = drawn_text(model, train);
  const auto pairs = static_cast<double>(train.size()), plain = static_cast<double>(corpus_bytes(train));
  const double epoch = static_cast<double>(tokens_of(train)) + text.more / sizeof(TokenId);
  const double batches = std::max(1.0, std::floor((epoch + 2 * pairs) / static_cast<double>(batch_tokens))),
               further = static_cast<double>(model.config().training.accumulate - 1);  // batches of an update
  // While an epoch is planned, beside what the pool keeps: lengths, order, batches, and what sorting takes.
  constexpr double kPlanned = 4 * sizeof(Index);
  const double planned = pairs * (kPlanned + sizeof(Index) * std::min(tokens / epoch, further / batches));
  if (model.config().data.subword_sampling == 0) return static_cast<Index>(planned);
  const double epochs = std::min(std::ceil(tokens / epoch), std::max(2.0, 1 + std::ceil(further / batches)));
  const double drawn = plain + text.more;
  return static_cast<Index>(planned + std::max(drawn, epochs * drawn - plain));  // the text itself goes after the first
}

}  // namespace weft

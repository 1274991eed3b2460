#include "weft/train/memory_text.h"

#include <algorithm>
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

Index text_bytes(const TranslationModel& model, const Corpus& train, double tokens) {
  constexpr Index kPlanned = 2 * sizeof(Index);  // order and batches; the rest of planning is memory that is free again
  const Index plan = kPlanned * train.size();
  if (model.config().data.subword_sampling == 0) return plan;
  // While an epoch is drawn there is still the one before, or for the first the text itself.
  const double more = drawn_text(model, train).more, drawn = static_cast<double>(corpus_bytes(train)) + more;
  const double epoch = static_cast<double>(tokens_of(train)) + more / sizeof(TokenId);
  return plan + static_cast<Index>(drawn + (tokens > epoch ? std::max(0.0, more) : 0));
}

}  // namespace weft

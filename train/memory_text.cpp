#include "weft/train/memory_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/core/random.h"

namespace weft {
namespace {

/// What data.subword_sampling takes for a training text, beside its ids.
struct DrawnText {
  double lines = 0;  ///< as strings, to draw from
  double more = 0;   ///< ids that are drawn for an epoch, beyond those of the text itself
};

/// One side of it, from a sample of the sentences, whose lines are made of their tokens.
DrawnText drawn_side(const TranslationModel& model, const EncodedText& text, const Tokenizer& tokenizer,
                     const Vocabulary& vocabulary) {
  constexpr Index kSample = 512;
  constexpr double kString = sizeof(std::string) + 16;  // and what the heap adds
  const DataConfig& config = model.config().data;
  const auto longest = static_cast<std::size_t>(std::min(config.max_length, model.longest_sentence()));
  Random random(static_cast<std::uint64_t>(model.config().training.seed), random_site("drawn tokens"));
  double sentences = 0, bytes = 0, more = 0;
  for (Index i = 0; i < text.sentences(); i += 1 + text.sentences() / kSample) {
    const std::vector<std::string> tokens = vocabulary.tokens(text[i]);
    const std::string line = tokenizer.join(tokens);
    const std::size_t drawn = tokenizer.sample(line, config.subword_sampling, random).size();
    sentences += 1;
    bytes += kString + static_cast<double>(line.size());
    if (drawn <= longest) more += static_cast<double>(drawn) - static_cast<double>(tokens.size());
  }
  const double all = static_cast<double>(text.sentences()) / std::max(sentences, 1.0);
  return {all * bytes, all * more * sizeof(TokenId)};
}

DrawnText drawn_text(const TranslationModel& model, const Corpus& train) {
  if (model.config().data.subword_sampling == 0) return {};
  const DrawnText source = drawn_side(model, train.source, model.source_tokenizer(), model.source_vocabulary()),
                  target = drawn_side(model, train.target, model.target_tokenizer(), model.target_vocabulary());
  return {source.lines + target.lines, source.more + target.more};
}

}  // namespace

Index corpus_bytes(const Corpus& corpus) {
  const auto tokens = static_cast<Index>(corpus.source.tokens.size() + corpus.target.tokens.size());
  return tokens * static_cast<Index>(sizeof(TokenId)) + 3 * corpus.size() * static_cast<Index>(sizeof(Index));
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
  const auto epoch =
      static_cast<double>(train.source.tokens.size() + train.target.tokens.size()) + more / sizeof(TokenId);
  return plan + static_cast<Index>(drawn + (tokens > epoch ? std::max(0.0, more) : 0));
}

}  // namespace weft

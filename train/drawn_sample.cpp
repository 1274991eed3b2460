#include "weft/train/drawn_sample.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/core/random.h"

namespace weft {

DrawnSample draw_sample(const TranslationModel& model, const Corpus& train, double tokens) {
  constexpr double kPairs = 512;
  const Config& config = model.config();
  const Index longest = std::min(config.data.max_length, model.longest_sentence()), pairs = train.size();
  const double share = std::max(kPairs / static_cast<double>(pairs),
                                tokens / static_cast<double>(train.source.tokens.size() + train.target.tokens.size()));
  const Index step = std::max<Index>(1, static_cast<Index>(1 / share));
  Random random(static_cast<std::uint64_t>(config.training.seed), random_site("drawn tokens"));
  DrawnSample sample;
  const auto draw = [&](std::span<const TokenId> plain, const Tokenizer& tokenizer, const Vocabulary& vocabulary,
                        EncodedText& side) {
    const std::string line = tokenizer.join(vocabulary.tokens(plain));
    const std::vector<TokenId> ids = vocabulary.ids(tokenizer.sample(line, config.data.subword_sampling, random));
    side.append(static_cast<Index>(ids.size()) > longest ? plain : std::span(ids));
    sample.plain_tokens += static_cast<Index>(plain.size());
    sample.line_bytes += static_cast<Index>(line.size());
  };
  for (Index i = 0; i < pairs; i += step) {
    draw(train.source[i], model.source_tokenizer(), model.source_vocabulary(), sample.drawn.source);
    draw(train.target[i], model.target_tokenizer(), model.target_vocabulary(), sample.drawn.target);
    sample.drawn.line.push_back(train.line[static_cast<std::size_t>(i)]);
  }
  sample.share = static_cast<double>(sample.drawn.size()) / static_cast<double>(pairs);
  return sample;
}

}  // namespace weft

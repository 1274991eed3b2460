#include "weft/train/epoch_encoder.h"

#include <algorithm>
#include <functional>

#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

/// The tokens of one side of a pair in one epoch.
std::vector<TokenId> sampled_ids(const Tokenizer& tokenizer, const Vocabulary& vocabulary, const std::string& line,
                                 double strength, std::uint64_t key, Index number, Index longest) {
  Random random(key, static_cast<std::uint64_t>(number));
  std::vector<std::string> tokens = tokenizer.sample(line, strength, random);
  if (static_cast<Index>(tokens.size()) > longest) tokens = tokenizer.split(line);
  return vocabulary.ids(tokens);
}

/// The bytes of the lines of one side from number `first` of `lines` on, `count` of them.
double bytes_of(const std::vector<std::string>& text, const std::vector<Index>& lines, Index first, Index count) {
  double bytes = 0;
  for (Index i = first; i < first + count; ++i) {
    bytes += static_cast<double>(text[static_cast<std::size_t>(lines[static_cast<std::size_t>(i)])].size());
  }
  return bytes;
}

/// Appends the sentences of a block to one side. `read` and `all` are the bytes of the lines that the side has then and
/// will have: where there is no room for more tokens, there will be for as many as their share says. A vector that
/// grows by itself would take up to twice its tokens, and three times while it grows.
void append(const std::vector<std::vector<TokenId>>& block, double read, double all, EncodedText& side) {
  std::size_t tokens = side.tokens.size();
  for (const auto& sentence : block) tokens += sentence.size();
  if (tokens > side.tokens.capacity()) {
    constexpr double kSpare = 1.03;
    side.tokens.reserve(static_cast<std::size_t>(kSpare * static_cast<double>(tokens) * all / read));
  }
  for (const auto& sentence : block) side.append(sentence);
}

}  // namespace

EpochEncoder::EpochEncoder(const TranslationModel& model, const ParallelText& text, std::vector<Index> lines,
                           Index longest)
    : model_(&model), text_(&text), lines_(std::move(lines)), longest_(longest) {
  if (lines_.empty()) return;
  if (lines_.front() < 0 || std::adjacent_find(lines_.begin(), lines_.end(), std::greater_equal<>()) != lines_.end()) {
    throw DataError("the pairs of the training text are not in order; remove its cache (*.corpus) and begin again");
  }
  if (lines_.back() >= static_cast<Index>(std::min(text.source.size(), text.target.size()))) {
    throw DataError(
        "the training text is shorter than when it was encoded; let nothing else write to it, and remove its cache "
        "(*.corpus) if it stays so");
  }
}

Corpus EpochEncoder::operator()(Index epoch) const {
  constexpr Index kTile = 64, kTiles = 64;  // pairs that one thread takes at a time, and tiles in flight
  const Config& config = model_->config();
  const auto key = [&](std::uint64_t site) {
    const auto words = philox({static_cast<std::uint32_t>(site), static_cast<std::uint32_t>(site >> 32),
                               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
                              static_cast<std::uint64_t>(config.training.seed));
    return words[0] | std::uint64_t{words[1]} << 32;
  };
  const std::uint64_t source_key = key(random_site("source subwords")),
                      target_key = key(random_site("target subwords"));
  const double strength = config.data.subword_sampling;
  Corpus corpus;
  const auto count = static_cast<Index>(lines_.size());
  const double all_source = bytes_of(text_->source, lines_, 0, count),
               all_target = bytes_of(text_->target, lines_, 0, count);
  double read_source = 0, read_target = 0;
  for (Index first = 0; first < count; first += kTile * kTiles) {
    std::vector<std::vector<TokenId>> source(static_cast<std::size_t>(std::min(count - first, kTile * kTiles)));
    std::vector<std::vector<TokenId>> target(source.size());
    parallel_for(static_cast<Index>(source.size()), kTile, [&](Index begin, Index end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const Index number = lines_[static_cast<std::size_t>(first) + i];
        const auto line = static_cast<std::size_t>(number);
        source[i] = sampled_ids(model_->source_tokenizer(), model_->source_vocabulary(), text_->source[line], strength,
                                source_key, number, longest_);
        target[i] = sampled_ids(model_->target_tokenizer(), model_->target_vocabulary(), text_->target[line], strength,
                                target_key, number, longest_);
      }
    });
    const auto size = static_cast<Index>(source.size());
    append(source, read_source += bytes_of(text_->source, lines_, first, size), all_source, corpus.source);
    append(target, read_target += bytes_of(text_->target, lines_, first, size), all_target, corpus.target);
  }
  corpus.line = lines_;
  return corpus;
}

}  // namespace weft

#include "weft/data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/threads.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr Index kTile = 4096;  // lines that one thread takes at a time
constexpr Index kTiles = 64;   // tiles in flight, which bounds the memory beside the corpus itself

// The pairs of one tile of lines.
struct Tile {
  Corpus corpus;
  CorpusReport report;
};

Index count_unknown(std::span<const TokenId> ids) {
  return static_cast<Index>(std::count(ids.begin(), ids.end(), kUnknown));
}

void encode_pair(const ParallelText& text, const TextEncoder& source, const TextEncoder& target, Index max_length,
                 Index line, Tile& tile) {
  const std::string& source_line = text.source[static_cast<std::size_t>(line)];
  const std::string& target_line = text.target[static_cast<std::size_t>(line)];
  CorpusReport& report = tile.report;
  ++report.pairs;
  if (is_blank(source_line) || is_blank(target_line)) {
    ++report.blank;
    return;
  }
  const auto source_ids = source.vocabulary.ids(source.tokenizer.split(source_line));
  const auto target_ids = target.vocabulary.ids(target.tokenizer.split(target_line));
  const auto source_length = static_cast<Index>(source_ids.size());
  const auto target_length = static_cast<Index>(target_ids.size());
  if (source_length == 0 || target_length == 0) {  // a user's tokenizer may drop what is not blank
    ++report.blank;
  } else if (source_length > max_length || target_length > max_length) {
    ++report.too_long;
  } else {
    ++report.kept;
    report.source_tokens += source_length;
    report.target_tokens += target_length;
    report.source_unknown += count_unknown(source_ids);
    report.target_unknown += count_unknown(target_ids);
    tile.corpus.source.append(source_ids);
    tile.corpus.target.append(target_ids);
    tile.corpus.line.push_back(line);
  }
}

void append(const EncodedText& part, EncodedText& whole) {
  whole.tokens.insert(whole.tokens.end(), part.tokens.begin(), part.tokens.end());
  for (Index i = 0; i < part.sentences(); ++i) whole.rows.append(part.length(i));
}

// `first` is the place of the tile's block in the whole text.
void append(const Tile& tile, Index first, EncodedCorpus& whole) {
  append(tile.corpus.source, whole.corpus.source);
  append(tile.corpus.target, whole.corpus.target);
  for (const Index line : tile.corpus.line) whole.corpus.line.push_back(first + line);
  for (Index CorpusReport::*count :
       {&CorpusReport::pairs, &CorpusReport::kept, &CorpusReport::blank, &CorpusReport::too_long,
        &CorpusReport::source_tokens, &CorpusReport::target_tokens, &CorpusReport::source_unknown,
        &CorpusReport::target_unknown}) {
    whole.report.*count += tile.report.*count;
  }
}

double percent(Index part, Index whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string CorpusReport::summary() const {
  std::string text = fmt::format("{} of {} pairs kept", kept, pairs);
  if (kept < pairs) text += fmt::format(" ({} dropped as blank on a side, {} as too long)", blank, too_long);
  if (short_lines.count > 0) {
    text +=
        fmt::format("; {} lines with too few columns skipped, the first is {}", short_lines.count, short_lines.first);
  }
  return text + fmt::format("; {} source tokens ({:.2f} % unknown), {} target tokens ({:.2f} % unknown)", source_tokens,
                            percent(source_unknown, source_tokens), target_tokens,
                            percent(target_unknown, target_tokens));
}

CorpusEncoder::CorpusEncoder(const TextEncoder& source, const TextEncoder& target, Index max_length, std::string name)
    : source_(source), target_(target), max_length_(max_length), name_(std::move(name)) {}

void CorpusEncoder::add(const ParallelText& block) {
  if (block.source.size() != block.target.size()) {
    throw DataError(fmt::format("{}: {} source lines but {} target lines; line n must translate line n", name_,
                                block.source.size(), block.target.size()));
  }
  const auto lines = static_cast<Index>(block.source.size());
  const Index before = result_.report.pairs;
  for (Index first = 0; first < lines; first += kTile * kTiles) {
    const Index count = std::min(lines - first, kTile * kTiles);
    std::vector<Tile> tiles(static_cast<std::size_t>((count + kTile - 1) / kTile));
    parallel_for(count, kTile, [&](Index begin, Index end) {
      Tile& tile = tiles[static_cast<std::size_t>(begin / kTile)];
      for (Index i = begin; i < end; ++i) encode_pair(block, source_, target_, max_length_, first + i, tile);
    });
    for (const Tile& tile : tiles) append(tile, before, result_);
  }
}

EncodedCorpus CorpusEncoder::finish(bool may_lose_all) {
  const CorpusReport& report = result_.report;
  if (report.kept == 0 && !(may_lose_all && report.too_long > 0)) {
    throw DataError(fmt::format(
        "{}: no pair is left of {} ({} blank, {} with more than {} tokens on a side); {}", name_, report.pairs,
        report.blank, report.too_long, max_length_,
        report.too_long > 0
            ? "raise what sets that: model.max_length, or for the training text data.max_length if that is less"
            : "give a text with sentences on both sides"));
  }
  result_.corpus.source.shrink();
  result_.corpus.target.shrink();
  result_.corpus.line.shrink_to_fit();
  return std::exchange(result_, {});
}

EncodedCorpus encode_corpus(const ParallelText& text, const TextEncoder& source, const TextEncoder& target,
                            Index max_length, const std::string& name, bool may_lose_all) {
  CorpusEncoder encoder(source, target, max_length, name);
  encoder.add(text);
  return encoder.finish(may_lose_all);
}

void count_tokens(std::span<const std::string> lines, const Tokenizer& tokenizer, TokenCounter& counter) {
  const auto count = static_cast<Index>(lines.size());
  for (Index first = 0; first < count; first += kTile * kTiles) {
    const Index size = std::min(count - first, kTile * kTiles);
    std::vector<TokenCounter> tiles(static_cast<std::size_t>((size + kTile - 1) / kTile));
    parallel_for(size, kTile, [&](Index begin, Index end) {
      TokenCounter& tile = tiles[static_cast<std::size_t>(begin / kTile)];
      for (Index i = begin; i < end; ++i) tile.add(tokenizer.split(lines[static_cast<std::size_t>(first + i)]));
    });
    for (const TokenCounter& tile : tiles) counter.add(tile);
  }
}

}  // namespace weft

#include "weft/data/subword_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "weft/data/utf8.h"

namespace weft {
namespace {

constexpr std::size_t kNoSymbol = static_cast<std::size_t>(-1);

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

/// A piece that may stand at some place of the text.
struct Step {
  std::size_t end;
  double weight;  // log of its probability, times the strength; then also of all that may follow
};

/// A symbol of the text in bpe; one that was merged into the one before it is empty.
struct Symbol {
  std::size_t begin, length;
  std::size_t before, after;  // symbols, or kNoSymbol
};

/// Two neighbouring symbols that are a piece together.
struct Merge {
  float score;
  std::size_t left, right;
  std::size_t length;  // of both when they were found; another length now means that one has changed

  bool operator<(const Merge& other) const {  // the highest score is made first, of equal ones the leftmost
    return score != other.score ? score < other.score : left > other.left;
  }
};

}  // namespace

SubwordSampler::SubwordSampler(const SubwordProto& model) : is_bpe_(model.kind == "bpe") {
  constexpr float kNoPiece = std::numeric_limits<float>::quiet_NaN();
  node_scores_.push_back(kNoPiece);  // the root
  for (const SubwordPiece& piece : model.pieces) {
    const bool special = is_special_token(piece.text);
    if (piece.type != SubwordType::kNormal || special) continue;
    if (is_bpe_) {
      scores_.emplace(piece.text, piece.score);
      continue;
    }
    std::uint32_t node = 0;
    for (const char byte : piece.text) {
      const auto [place, is_new] =
          edges_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(node_scores_.size()));
      if (is_new) node_scores_.push_back(kNoPiece);
      node = place->second;
    }
    node_scores_[node] = piece.score;
  }
}

void SubwordSampler::sample(std::string_view text, double strength, Random& random,
                            std::vector<std::string>& tokens) const {
  if (is_bpe_) {
    sample_bpe(text, strength, random, tokens);
  } else {
    sample_unigram(text, strength, random, tokens);
  }
}

void SubwordSampler::sample_unigram(std::string_view text, double strength, Random& random,
                                    std::vector<std::string>& tokens) const {
  constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  // Of each place: the log of the summed weights of all that leads from there to the end. A piece may be long and a text
  // too, so that the steps of all places are too many to be kept: those of a place are found again where it is reached.
  std::vector<double> total(text.size() + 1, kImpossible);
  std::vector<Step> steps;
  const auto find_steps = [&](std::size_t begin) {
    steps.clear();
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto found = edges_.find(edge(node, text[at]));
      if (found == edges_.end()) break;
      node = found->second;
      if (std::isnan(node_scores_[node]) || total[at + 1] == kImpossible) continue;
      steps.push_back({at + 1, strength * static_cast<double>(node_scores_[node]) + total[at + 1]});
    }
  };
  total[text.size()] = 0;
  for (std::size_t begin = text.size(); begin-- > 0;) {
    find_steps(begin);
    double largest = kImpossible, sum = 0;
    for (const Step& step : steps) largest = std::max(largest, step.weight);
    for (const Step& step : steps) sum += std::exp(step.weight - largest);
    if (sum > 0) total[begin] = largest + std::log(sum);
  }
  for (std::size_t begin = 0; begin < text.size();) {
    find_steps(begin);
    if (steps.empty()) {  // not made of pieces, against what was promised
      tokens.emplace_back(text.substr(begin));
      return;
    }
    double left = random.uniform();
    std::size_t chosen = 0;
    for (; chosen + 1 < steps.size(); ++chosen) {
      left -= std::exp(steps[chosen].weight - total[begin]);
      if (left < 0) break;
    }
    const std::size_t end = steps[chosen].end;
    tokens.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
}

void SubwordSampler::sample_bpe(std::string_view text, double dropout, Random& random,
                                std::vector<std::string>& tokens) const {
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = code_point_at(text, at).length;
    symbols.push_back({at, length, symbols.size() - 1, symbols.size() + 1});  // 0 - 1 is kNoSymbol
    at += length;
  }
  if (symbols.empty()) return;
  symbols.back().after = kNoSymbol;

  std::priority_queue<Merge> merges;
  const auto offer = [&](std::size_t left, std::size_t right) {
    if (left == kNoSymbol || right == kNoSymbol) return;
    const std::size_t length = symbols[left].length + symbols[right].length;
    const auto found = scores_.find(text.substr(symbols[left].begin, length));
    if (found != scores_.end()) merges.push({found->second, left, right, length});
  };
  for (std::size_t i = 1; i < symbols.size(); ++i) offer(i - 1, i);
  while (!merges.empty()) {
    const Merge merge = merges.top();
    merges.pop();
    Symbol &left = symbols[merge.left], &right = symbols[merge.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != merge.length) continue;
    if (random.uniform() < dropout) continue;
    left.length = merge.length;
    right.length = 0;
    left.after = right.after;
    if (right.after != kNoSymbol) symbols[right.after].before = merge.left;
    offer(left.before, merge.left);
    offer(merge.left, left.after);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.length > 0) tokens.emplace_back(text.substr(symbol.begin, symbol.length));
  }
}

}  // namespace weft

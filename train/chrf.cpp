// The numbers of a line are, for each n-gram order, those of the hypothesis, those of the reference, and the
// matches.
#include "weft/train/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/lower_case.h"
#include "weft/data/utf8.h"
#include "weft/train/score_tokenizers.h"
#include "weft/train/shared_ngrams.h"

namespace weft {
namespace {

constexpr std::size_t kCharacterOrder = 6, kMostWordOrder = 2;
constexpr double kBetaSquared = 4;

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// The n-grams of a line of text.
struct Line {
  SortedNgrams characters, words;
};

/// Reads a line, with words if there are n-grams of them.
Line line_of(std::string_view text, std::size_t word_order, WordNumbers& numbers) {
  Symbols characters, words;
  characters.reserve(text.size());
  const auto add = [&](std::string_view word) { words += numbers(word); };
  for_each_word(text, [&](std::string_view word) {
    for (std::size_t at = 0; at < word.size();) {
      const CodePoint point = code_point_at(word, at);
      characters += point.value;
      at += point.length;
    }
    if (word_order == 0) return;
    // One mark at the end comes off, or else one at the beginning, unless it is the whole word.
    if (code_point_at(word, 0).length == word.size()) {
      add(word);
    } else if (is_ascii_punctuation(word.back())) {
      add(word.substr(0, word.size() - 1));
      add(word.substr(word.size() - 1));
    } else if (is_ascii_punctuation(word.front())) {
      add(word.substr(0, 1));
      add(word.substr(1));
    } else {
      add(word);
    }
  });
  return {SortedNgrams(std::move(characters), kCharacterOrder), SortedNgrams(std::move(words), word_order)};
}

/// Writes the numbers of each order.
void count_orders(const SortedNgrams& hypothesis, const SortedNgrams& reference, std::span<Index> numbers) {
  const std::vector<Index> shared = hypothesis.shared_with({&reference, 1});
  for (std::size_t n = 1; n <= shared.size(); ++n) {
    Index* const of_order = &numbers[3 * (n - 1)];
    of_order[1] = reference.count(n);
    of_order[0] = of_order[1] == 0 ? 0 : hypothesis.count(n);  // no miss where no hit was possible
    of_order[2] = shared[n - 1];
  }
}

}  // namespace

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  if (options.word_order > kMostWordOrder) {
    throw ConfigError(
        fmt::format("chrF: the word order is {}; it must be 0 to {}", options.word_order, kMostWordOrder));
  }
}

std::string Chrf::settings() const {
  return fmt::format("case:{}|eff:yes|nc:{}|nw:{}|space:no", options_.lowercase ? "lc" : "mixed", kCharacterOrder,
                     options_.word_order);
}

std::size_t Chrf::width() const { return 3 * (kCharacterOrder + options_.word_order); }

void Chrf::count(std::string_view hypothesis, std::span<const std::string_view> references,
                 std::span<Index> numbers) const {
  WordNumbers word_numbers;
  const auto read = [&](std::string_view text) {
    return line_of(options_.lowercase ? lower_case(text) : text, options_.word_order, word_numbers);
  };
  const Line line = read(hypothesis);
  std::vector<Index> candidate(width());
  double best = -1;
  for (const std::string_view text : references) {
    const Line reference = read(text);
    const std::span<Index> all = candidate;
    count_orders(line.characters, reference.characters, all.first(3 * kCharacterOrder));
    count_orders(line.words, reference.words, all.subspan(3 * kCharacterOrder));
    const double score = this->score(candidate);
    if (score > best) {
      best = score;
      std::copy(candidate.begin(), candidate.end(), numbers.begin());
    }
  }
}

double Chrf::score(std::span<const Index> sums) const {
  double precision = 0, recall = 0, orders = 0;
  for (std::size_t at = 0; at < sums.size(); at += 3) {
    if (sums[at] == 0 || sums[at + 1] == 0) continue;
    const auto matched = static_cast<double>(sums[at + 2]);
    precision += matched / static_cast<double>(sums[at]);
    recall += matched / static_cast<double>(sums[at + 1]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  // In the order of sacreBLEU's operations; four times a number is exact, so that nothing depends on fused ones.
  const double score = (1 + kBetaSquared) * precision * recall;
  return 100 * (score / (kBetaSquared * precision + recall));
}

}  // namespace weft

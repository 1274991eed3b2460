// The numbers of a line are, for each n-gram order, those of the hypothesis, those of the reference, and the
// matches. Words are numbered, so that one way of matching n-grams serves characters and words.
#include "weft/train/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "weft/core/error.h"
#include "weft/data/lower_case.h"
#include "weft/data/utf8.h"
#include "weft/train/score_tokenizers.h"

namespace weft {
namespace {

constexpr std::size_t kCharacterOrder = 6, kMostWordOrder = 2;
constexpr double kBetaSquared = 4;

using Symbols = std::u32string;  // characters, or words by their numbers
using WordNumbers = std::unordered_map<std::string, char32_t>;

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// The symbols of a line of text.
struct Line {
  Symbols characters, words;
};

Line line_of(std::string_view text, bool with_words, WordNumbers& numbers) {
  Line line;
  const auto add = [&](std::string_view word) {
    line.words += numbers.try_emplace(std::string(word), static_cast<char32_t>(numbers.size())).first->second;
  };
  for (const std::string& word : split_words(text)) {
    for (std::size_t at = 0; at < word.size();) {
      const CodePoint point = code_point_at(word, at);
      line.characters += point.value;
      at += point.length;
    }
    if (!with_words) continue;
    // One mark at the end comes off, or else one at the beginning, unless it is the whole word.
    if (code_point_at(word, 0).length == word.size()) {
      add(word);
    } else if (is_ascii_punctuation(word.back())) {
      add(std::string_view(word).substr(0, word.size() - 1));
      add(std::string_view(word).substr(word.size() - 1));
    } else if (is_ascii_punctuation(word.front())) {
      add(std::string_view(word).substr(0, 1));
      add(std::string_view(word).substr(1));
    } else {
      add(word);
    }
  }
  return line;
}

/// What stands at each place of a line, `longest` symbols of it, in alphabetical order. The beginnings of n
/// symbols of those that are so long are the line's n-grams, in alphabetical order too.
std::vector<std::u32string_view> sorted_ngrams(std::u32string_view symbols, std::size_t longest) {
  std::vector<std::u32string_view> ngrams;
  for (std::size_t at = 0; at < symbols.size(); ++at) ngrams.push_back(symbols.substr(at, longest));
  std::sort(ngrams.begin(), ngrams.end());
  return ngrams;
}

/// How many n-grams two lines share, each as often as both have it.
Index matches(const std::vector<std::u32string_view>& a, const std::vector<std::u32string_view>& b, std::size_t n) {
  const auto next = [n](const std::vector<std::u32string_view>& ngrams, std::size_t at) {
    while (at < ngrams.size() && ngrams[at].size() < n) ++at;
    return at;
  };
  Index count = 0;
  for (std::size_t i = next(a, 0), j = next(b, 0); i < a.size() && j < b.size();) {
    const int order = a[i].substr(0, n).compare(b[j].substr(0, n));
    if (order == 0) ++count;
    if (order <= 0) i = next(a, i + 1);
    if (order >= 0) j = next(b, j + 1);
  }
  return count;
}

/// Writes the numbers of the orders 1 to `longest`.
void count_orders(const Symbols& hypothesis, const Symbols& reference, std::size_t longest, std::span<Index> numbers) {
  const auto ours = sorted_ngrams(hypothesis, longest), theirs = sorted_ngrams(reference, longest);
  const auto ngrams = [](const Symbols& symbols, std::size_t n) {
    return symbols.size() < n ? Index{0} : static_cast<Index>(symbols.size() - n + 1);
  };
  for (std::size_t n = 1; n <= longest; ++n) {
    Index* const of_order = &numbers[3 * (n - 1)];
    of_order[1] = ngrams(reference, n);
    of_order[0] = of_order[1] == 0 ? 0 : ngrams(hypothesis, n);  // no miss where no hit was possible
    of_order[2] = matches(ours, theirs, n);
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
    return line_of(options_.lowercase ? lower_case(text) : text, options_.word_order > 0, word_numbers);
  };
  const Line line = read(hypothesis);
  std::vector<Index> candidate(width());
  double best = -1;
  for (const std::string_view text : references) {
    const Line reference = read(text);
    const std::span<Index> all = candidate;
    count_orders(line.characters, reference.characters, kCharacterOrder, all.first(3 * kCharacterOrder));
    count_orders(line.words, reference.words, options_.word_order, all.subspan(3 * kCharacterOrder));
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

// The numbers of a line are its length, that of its closest reference, and for each n-gram order the matches
// and the n-grams.
#include "weft/train/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/data/lower_case.h"
#include "weft/train/shared_ngrams.h"

namespace weft {
namespace {

constexpr std::size_t kOrders = 4;
constexpr std::size_t kLength = 0, kReferenceLength = 1, kMatches = 2, kTotals = kMatches + kOrders;
constexpr std::string_view kSmoothings[] = {"exp", "floor", "add-k", "none"};  // in the order of BleuSmoothing

SortedNgrams ngrams_of(std::string_view text, const BleuOptions& options, WordNumbers& numbers) {
  Symbols words;
  for_each_bleu_word(options.lowercase ? lower_case(text) : text, options.tokenizer,
                     [&](std::string_view word) { words += numbers(word); });
  return SortedNgrams(std::move(words), kOrders);
}

bool takes_value(BleuSmoothing smoothing) {
  return smoothing == BleuSmoothing::kFloor || smoothing == BleuSmoothing::kAddK;
}

double value_of(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smoothing == BleuSmoothing::kAddK ? 1.0 : 0.1);
}

}  // namespace

BleuSmoothing bleu_smoothing(std::string_view name) {
  const auto found = std::find(std::begin(kSmoothings), std::end(kSmoothings), name);
  if (found == std::end(kSmoothings)) {
    throw ConfigError(fmt::format("\"{}\" is not a smoothing of BLEU; must be exp, floor, add-k or none{}", name,
                                  suggestion(name, {std::begin(kSmoothings), std::end(kSmoothings)})));
  }
  return static_cast<BleuSmoothing>(found - std::begin(kSmoothings));
}

Bleu::Bleu(const BleuOptions& options) : options_(options) {
  if (!options.smooth_value) return;
  if (!takes_value(options.smoothing)) {
    throw ConfigError(fmt::format("BLEU: smoothing {} has no smooth value; leave it out, or use floor or add-k",
                                  kSmoothings[static_cast<std::size_t>(options.smoothing)]));
  }
  if (!(*options.smooth_value >= 0)) {
    throw ConfigError(fmt::format("BLEU: the smooth value is {}; it must be 0 or more", *options.smooth_value));
  }
}

std::string Bleu::settings() const {
  const std::string value = takes_value(options_.smoothing) ? fmt::format("[{:.2f}]", value_of(options_)) : "";
  return fmt::format("case:{}|eff:{}|tok:{}|smooth:{}{}", options_.lowercase ? "lc" : "mixed",
                     options_.effective_order ? "yes" : "no", name_of(options_.tokenizer),
                     kSmoothings[static_cast<std::size_t>(options_.smoothing)], value);
}

void Bleu::count(std::string_view hypothesis, std::span<const std::string_view> references,
                 std::span<Index> numbers) const {
  WordNumbers word_numbers;
  const SortedNgrams line = ngrams_of(hypothesis, options_, word_numbers);
  std::vector<SortedNgrams> others;
  Index closest = 0;  // of the references' lengths
  for (const std::string_view text : references) {
    others.push_back(ngrams_of(text, options_, word_numbers));
    const Index length = others.back().symbols();
    const Index off = std::abs(length - line.symbols()), least = std::abs(closest - line.symbols());
    if (others.size() == 1 || off < least || (off == least && length < closest)) closest = length;
  }
  numbers[kLength] = line.symbols();
  numbers[kReferenceLength] = closest;
  const std::vector<Index> shared = line.shared_with(others);
  for (std::size_t n = 0; n < kOrders; ++n) {
    numbers[kMatches + n] = shared[n];
    numbers[kTotals + n] = line.count(n + 1);
  }
}

BleuScore Bleu::compute(std::span<const Index> sums) const {
  BleuScore result;
  result.hypothesis_length = sums[kLength];
  result.reference_length = sums[kReferenceLength];
  const auto length = static_cast<double>(result.hypothesis_length);
  const auto wanted = static_cast<double>(result.reference_length);
  if (length < wanted) result.brevity_penalty = length > 0 ? std::exp(1 - wanted / length) : 0;
  const auto matches = sums.subspan(kMatches, kOrders);
  if (std::all_of(matches.begin(), matches.end(), [](Index count) { return count == 0; })) return result;

  double halvings = 1;
  std::size_t orders = kOrders;
  for (std::size_t n = 0; n < kOrders; ++n) {
    const double added = options_.smoothing == BleuSmoothing::kAddK && n > 0 ? value_of(options_) : 0;
    const double correct = static_cast<double>(matches[n]) + added;
    const double total = static_cast<double>(sums[kTotals + n]) + added;
    if (total == 0) break;  // no line is this long: the orders from here on stay 0, and so may the score
    if (options_.effective_order) orders = n + 1;
    if (correct > 0) {
      result.precisions[n] = 100 * correct / total;
    } else if (options_.smoothing == BleuSmoothing::kExp) {
      halvings *= 2;
      result.precisions[n] = 100 / (halvings * total);
    } else if (options_.smoothing == BleuSmoothing::kFloor) {
      result.precisions[n] = 100 * value_of(options_) / total;
    }
  }
  double sum = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    if (result.precisions[n] == 0) return result;
    sum += std::log(result.precisions[n]);
  }
  result.score = result.brevity_penalty * std::exp(sum / static_cast<double>(orders));
  // exp(log(100)) is a little over 100; a perfect score is 100 and not that. (A large floor has precisions above it.)
  if (*std::max_element(result.precisions.begin(), result.precisions.end()) <= 100) {
    result.score = std::min(100.0, result.score);
  }
  return result;
}

std::string Bleu::details(std::span<const Index> sums) const {
  const BleuScore bleu = compute(sums);
  const double ratio = bleu.reference_length == 0
                           ? 0
                           : static_cast<double>(bleu.hypothesis_length) / static_cast<double>(bleu.reference_length);
  const auto& p = bleu.precisions;
  return fmt::format("{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", p[0], p[1],
                     p[2], p[3], bleu.brevity_penalty, ratio, bleu.hypothesis_length, bleu.reference_length);
}

}  // namespace weft

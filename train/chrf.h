// chrF and chrF++ as sacreBLEU computes them; tests/fixtures/scores.json holds sacreBLEU's own numbers.
#pragma once

#include "weft/train/metric.h"

namespace weft {

/// How chrF is computed; the defaults are sacreBLEU's.
struct ChrfOptions {
  std::size_t word_order = 0;  ///< longest word n-grams, at most 2: 0 is chrF, 2 is chrF++
  bool lowercase = false;      ///< whether case does not matter
};

/// The F-score, with recall counting twice as much as precision, of character n-grams of 1 to 6 characters
/// and of word n-grams, over a whole corpus.
///
/// A character is a code point; white space is left out. Precision and recall are means over the orders that
/// text and reference have both. Of several references of a line, the one with the best score of that line
/// alone counts. Source: Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation"; 2017,
/// "chrF++: words helping character n-grams".
class Chrf : public Metric {
 public:
  /// Throws ConfigError for a word order above 2.
  explicit Chrf(const ChrfOptions& options = {});

  std::string key() const override { return "chrf" + std::string(options_.word_order, '+'); }
  std::string name() const override { return "chrF2" + std::string(options_.word_order, '+'); }
  std::string settings() const override;
  std::size_t width() const override;
  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             std::span<Index> numbers) const override;
  double score(std::span<const Index> sums) const override;
  std::string details(std::span<const Index>) const override { return ""; }

 private:
  ChrfOptions options_;
};

}  // namespace weft

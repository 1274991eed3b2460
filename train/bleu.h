// BLEU as sacreBLEU computes it; tests/fixtures/scores.json holds sacreBLEU's own numbers.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "weft/train/metric.h"
#include "weft/train/score_tokenizers.h"

namespace weft {

/// What BLEU does about n-gram orders without a match (Chen and Cherry 2014): exp halves the precision for
/// each such order, floor counts smooth_value matches, add-k adds smooth_value to the counts above unigrams.
enum class BleuSmoothing { kExp, kFloor, kAddK, kNone };

/// The smoothing of a name: "exp", "floor", "add-k" or "none". Throws ConfigError for another one.
BleuSmoothing bleu_smoothing(std::string_view name);

/// How BLEU is computed; the defaults are sacreBLEU's.
struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  std::optional<double> smooth_value;  ///< of floor and add-k; their defaults are 0.1 and 1
  bool lowercase = false;              ///< whether case does not matter
  bool effective_order = false;        ///< whether n-grams longer than any line are left out, as for sentences
};

/// BLEU and what it is made of.
struct BleuScore {
  double score = 0;                       ///< 0 to 100, or more with a floor above 1
  std::array<double, 4> precisions = {};  ///< of 1- to 4-grams, 0 to 100
  double brevity_penalty = 1;
  Index hypothesis_length = 0;  ///< in BLEU's words
  Index reference_length = 0;   ///< in BLEU's words, the closest reference of each line
};

/// BLEU over a whole corpus.
///
/// Of several references an n-gram counts as often as in the one that has it most often, and the reference
/// closest in length counts for the brevity penalty, the shorter of two. As in sacreBLEU a corpus without a
/// single 4-gram scores 0, even against itself, unless there is effective_order. Source: Papineni et al. 2002, "BLEU: a Method for Automatic
/// Evaluation of Machine Translation"; Post 2018, "A Call for Clarity in Reporting BLEU Scores".
class Bleu : public Metric {
 public:
  /// Throws ConfigError for a smooth_value that is negative, or that is given to a smoothing without one.
  explicit Bleu(const BleuOptions& options = {});

  std::string key() const override { return "bleu"; }
  std::string name() const override { return "BLEU"; }
  std::string settings() const override;
  std::size_t width() const override { return 10; }
  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             std::span<Index> numbers) const override;
  double score(std::span<const Index> sums) const override { return compute(sums).score; }
  std::string details(std::span<const Index> sums) const override;

  /// The score with its parts.
  BleuScore compute(std::span<const Index> sums) const;

 private:
  BleuOptions options_;
};

}  // namespace weft

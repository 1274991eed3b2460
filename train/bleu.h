// Scores of translations against references: corpus BLEU and exact match.
// BLEU equals sacreBLEU's to every printed digit; tests/fixtures/bleu.json holds sacreBLEU's own numbers.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// How BLEU cuts a line into words: by the rules of mteval-v13a, or at white space only.
enum class BleuTokenizer { k13a, kNone };

/// What BLEU does about n-gram orders without a match (Chen and Cherry 2014): exp halves the precision for
/// each such order, floor counts smooth_value matches, add-k adds smooth_value to the counts above unigrams.
enum class BleuSmoothing { kExp, kFloor, kAddK, kNone };

/// How BLEU is computed; the defaults are sacreBLEU's.
struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  std::optional<double> smooth_value;  ///< of floor and add-k; their defaults are 0.1 and 1
};

/// A corpus's BLEU and what it is made of.
struct BleuScore {
  double score = 0;                       ///< 0 to 100
  std::array<double, 4> precisions = {};  ///< of 1- to 4-grams, 0 to 100
  double brevity_penalty = 1;
  Index hypothesis_length = 0;  ///< in BLEU's words
  Index reference_length = 0;   ///< in BLEU's words, the closest reference of each line
};

/// Computes BLEU over a whole corpus.
///
/// references[r][i] is the r-th reference of hypotheses[i]. Empty lines are lines without n-grams. As in
/// sacreBLEU a corpus without a single 4-gram scores 0, even against itself. Throws DataError for no
/// references or unequal counts of lines, ConfigError for a smooth_value that is negative. Source: Papineni
/// et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation".
BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options = {});

/// Cuts a line into BLEU's words.
std::vector<std::string> bleu_tokenize(std::string_view line, BleuTokenizer tokenizer);

/// Writes a score as sacreBLEU prints it: `BLEU = 34.95 70.0/44.4/25.0/14.3 (BP = 1.000 ratio = ...)`.
std::string format_bleu(const BleuScore& score);

/// Says how a score was made, in sacreBLEU's form:
/// `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-...`.
std::string bleu_signature(const BleuOptions& options, Index references);

/// Returns the fraction of hypotheses equal to their reference byte for byte; 0 for no lines.
/// Throws DataError for unequal counts.
double exact_match(std::span<const std::string> hypotheses, std::span<const std::string> references);

}  // namespace weft

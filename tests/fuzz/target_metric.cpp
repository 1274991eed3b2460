// Any words as the options of metrics, and any text scored by them. The parts: --metric, --tokenizer, --smoothing,
// --smooth-value (left out if empty), then a hypothesis and its references.
#include <cmath>

#include "targets.h"
#include "weft/core/error.h"
#include "weft/train/metric_arguments.h"

namespace weft {
namespace {

constexpr std::size_t kOptions = 4;

Metrics metrics_from(const std::vector<std::string>& parts) {
  std::vector<std::string> words;
  constexpr const char* kNames[] = {"--metric", "--tokenizer", "--smoothing", "--smooth-value"};
  for (std::size_t i = 0; i < std::min(parts.size(), kOptions); ++i) {
    if (parts[i].empty()) continue;
    words.push_back(kNames[i]);
    words.push_back(parts[i]);
  }
  if (parts.size() % 2 == 0) words.push_back("--lowercase");
  return metrics_of(Arguments({"score-text", "", "", metric_options("13a"), {}}, words), {});
}

void run(const std::string& bytes) {
  const std::vector<std::string> parts = fuzz_parts(bytes);
  Metrics metrics;
  try {
    metrics = metrics_from(parts);
  } catch (const ConfigError&) {
    return;
  }
  if (parts.size() <= kOptions) return;
  const std::vector<std::string> hypotheses{parts[kOptions]};
  std::vector<std::vector<std::string>> references;
  for (std::size_t i = kOptions + 1; i < parts.size(); ++i) references.push_back({parts[i]});
  if (references.empty()) references.push_back(hypotheses);
  for (const auto& metric : metrics) {
    const LineCounts counts = count_lines(*metric, hypotheses, references);
    const double score = metric->score(counts.sums());
    const bool at_most_100 = score < 100.0001 || parts[2] == "floor";  // whose value may be above 1
    fuzz_require(std::isfinite(score) && score >= 0 && at_most_100, "a score is from 0 to 100");
    format_score(*metric, counts.sums(), signature(*metric, references.size()));
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string bytes = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) bytes += kFuzzPart + parts[i];
  return bytes;
}

std::vector<std::string> seeds() {
  const std::string text =
      "The cat (\"it\") isn't 3.5-4 kg, &amp; sat on <skipped> the mat. \xE4\xB8\xAD\xE6\x96\x87\xCE\xA3";
  return {"",
          joined({"bleu,chrf,chrf++", "13a", "exp", "", text, "A cat, 3.5 kg, sat on a mat.", "The cat sat."}),
          joined({"bleu", "zh", "floor", "0.1", text, text}),
          joined({"bleu", "char", "add-k", "1e9", "", text}),
          joined({"chrf++,bleu", "none", "none", "", text, ""}),
          joined({"bleu,bleu", "13A", "add-", "-1", "a"}),
          joined({"chrf", "", "", "", "\xFF\xC3(\xED\xA0\x80", "\xE2\x80\xA8 \x1C"})};
}

}  // namespace

FuzzTarget fuzz_metric() { return {"metric", 1024, run, seeds}; }

}  // namespace weft

// weft score-text: scores of any text, whoever wrote it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/train/bootstrap.h"
#include "weft/train/commands.h"
#include "weft/train/line_input.h"
#include "weft/train/metric_arguments.h"
#include "weft/train/output_file.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

/// Text and what errors call it.
struct NamedText {
  std::string name;
  std::vector<std::string> lines;
};

std::vector<NamedText> read_standard_input() {
  constexpr std::size_t kBlock = 4096;
  LineInput input("");
  std::vector<NamedText> texts{{input.name(), {}}};
  std::vector<std::string>& lines = texts.front().lines;
  for (auto block = input.next_lines(kBlock); !block.empty(); block = input.next_lines(kBlock)) {
    for (std::string& line : block) {
      lines.push_back(std::move(line));
      if (const auto problem = text_problem(lines.back())) {
        throw DataError(fmt::format("{}:{}:{}: {}", input.name(), lines.size(), problem->column, problem->what));
      }
    }
  }
  return texts;
}

std::vector<NamedText> read_texts(const std::vector<std::string>& paths) {
  std::vector<NamedText> texts;
  for (const std::string& path : paths) {
    std::vector<std::string> lines = read_lines(path);
    texts.push_back({path, std::move(lines)});
  }
  return texts;
}

void require_lines(const std::vector<NamedText>& texts, const NamedText& first) {
  for (const NamedText& text : texts) {
    if (text.lines.empty()) throw DataError(fmt::format("{}: has no lines; there is nothing to score", text.name));
    if (text.lines.size() != first.lines.size()) {
      throw DataError(fmt::format("{} has {} lines but {} has {}; line n of one must belong to line n of the other",
                                  first.name, first.lines.size(), text.name, text.lines.size()));
    }
  }
}

/// A metric's results for all hypotheses.
struct Scores {
  const Metric& metric;
  std::string signature;
  std::vector<LineCounts> counts;
  std::vector<BootstrapResult> bootstrap;  ///< empty without resampling
};

std::string to_json(const std::vector<NamedText>& hypotheses, const std::vector<Scores>& all, bool by_sentence) {
  Json json = Json::array();
  for (std::size_t h = 0; h < hypotheses.size(); ++h) {
    Json scores = Json::array();
    for (const Scores& of_metric : all) {
      const LineCounts& counts = of_metric.counts[h];
      const std::vector<Index> sums = counts.sums();
      Json score{{"metric", of_metric.metric.key()},
                 {"name", of_metric.metric.name()},
                 {"score", of_metric.metric.score(sums)},
                 {"signature", of_metric.signature},
                 {"verbose_score", of_metric.metric.details(sums)}};
      for (std::size_t i = 0; by_sentence && i < counts.lines(); ++i) {
        score["sentences"].push_back(of_metric.metric.score(counts[i]));
      }
      if (!of_metric.bootstrap.empty()) {
        const BootstrapResult& result = of_metric.bootstrap[h];
        score["mean"] = result.mean;
        score["half_width"] = result.half_width;
        score["p_value"] = result.p_value ? Json(*result.p_value) : Json();
      }
      scores.push_back(score);
    }
    json.push_back({{"hypothesis", hypotheses[h].name}, {"lines", hypotheses[h].lines.size()}, {"scores", scores}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";  // a path may be any bytes
}

/// The scores of every line, as sacreBLEU prints them.
std::string sentences_to_text(const std::vector<Scores>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.front().counts.front().lines(); ++i) {
    for (const Scores& scores : all) {
      text += format_score(scores.metric, scores.counts.front()[i], scores.signature) + "\n";
    }
  }
  return text;
}

std::string to_text(const std::vector<NamedText>& hypotheses, const std::vector<Scores>& all) {
  std::string text;
  for (std::size_t h = 0; h < hypotheses.size(); ++h) {
    if (hypotheses.size() > 1) text += fmt::format("{}{}\n", h > 0 ? "\n" : "", show_controls(hypotheses[h].name));
    for (const Scores& scores : all) {
      text += format_score(scores.metric, scores.counts[h].sums(), scores.signature) + "\n";
    }
  }
  if (all.front().bootstrap.empty()) return text;
  std::vector<std::vector<std::string>> table{{"metric", "hypothesis", "score", "mean ± 95 %", "p-value"}};
  for (const Scores& scores : all) {
    for (std::size_t h = 0; h < hypotheses.size(); ++h) {
      const BootstrapResult& result = scores.bootstrap[h];
      const std::string p_value = result.p_value
                                      ? fmt::format("{:.4f}{}", *result.p_value, *result.p_value < 0.05 ? " *" : "  ")
                                      : "baseline  ";
      table.push_back({scores.metric.name(), show_controls(hypotheses[h].name), fmt::format("{:.2f}", result.score),
                       fmt::format("{:.2f} ± {:.2f}", result.mean, result.half_width), p_value});
    }
  }
  return text + "\n" + format_table(table, "llrrr") +
         "* differs from the baseline at the level of 0.05 (paired bootstrap resampling)\n";
}

std::optional<Resampling> resampling_of(const Arguments& arguments, std::size_t hypotheses) {
  if (!arguments.has("paired-bootstrap")) {
    if (arguments.has("seed")) arguments.refuse("--seed is for --paired-bootstrap");
    return std::nullopt;
  }
  Resampling resampling;
  resampling.resamples = arguments.whole("paired-bootstrap", resampling.resamples, 1, 1'000'000);
  resampling.seed = static_cast<std::uint64_t>(arguments.whole("seed", static_cast<Index>(resampling.seed), 0));
  if (hypotheses < 2) {
    throw ConfigError(
        fmt::format("score-text: --paired-bootstrap compares hypotheses with the first one; give "
                    "--hypothesis at least twice, found {}",
                    hypotheses));
  }
  return resampling;
}

int score_text(const Arguments& arguments, const Registry&) {
  if (!arguments.positional().empty()) {
    throw ConfigError(
        fmt::format("score-text: \"{}\" belongs to no option; name files with --hypothesis and "
                    "--reference",
                    arguments.positional().front()));
  }
  if (!arguments.has("reference")) arguments.text("reference");  // says that it is missing
  const bool by_sentence = arguments.has("sentences");
  BleuOptions bleu;
  bleu.effective_order = by_sentence;
  const Metrics metrics = metrics_of(arguments, bleu);
  if (by_sentence && arguments.all("hypothesis").size() > 1) {
    throw ConfigError("score-text: --sentences is for one --hypothesis; score them one by one");
  }
  const auto resampling = resampling_of(arguments, arguments.all("hypothesis").size());
  use_threads(arguments, 0);
  std::vector<std::string> inputs = arguments.all("reference");
  for (const std::string& file : arguments.all("hypothesis")) inputs.push_back(file);
  if (!arguments.has("hypothesis")) inputs.emplace_back("/dev/stdin");
  require_not_printed_to(inputs);

  const std::vector<NamedText> references = read_texts(arguments.all("reference"));
  const std::vector<NamedText> hypotheses =
      arguments.has("hypothesis") ? read_texts(arguments.all("hypothesis")) : read_standard_input();
  require_lines(references, references.front());
  require_lines(hypotheses, references.front());
  std::vector<std::vector<std::string>> reference_lines;
  for (const NamedText& reference : references) reference_lines.push_back(reference.lines);

  std::vector<Scores> all;
  for (const auto& metric : metrics) {
    Scores scores{*metric, signature(*metric, references.size(), resampling), {}, {}};
    for (const NamedText& hypothesis : hypotheses) {
      scores.counts.push_back(count_lines(*metric, hypothesis.lines, reference_lines));
    }
    if (resampling) scores.bootstrap = paired_bootstrap(*metric, scores.counts, *resampling);
    all.push_back(std::move(scores));
  }
  print(arguments.has("json") ? to_json(hypotheses, all, by_sentence)
        : by_sentence         ? sentences_to_text(all)
                              : to_text(hypotheses, all));
  return 0;
}

std::vector<Option> score_text_options() {
  std::vector<Option> options{
      {"hypothesis", "FILE", "Text to score, one sentence a line; standard input unless given. May be repeated."},
      {"reference", "FILE", "What it should be, line by line. May be repeated: then a line may be any of them."}};
  for (const Option& option : metric_options("13a")) options.push_back(option);
  options.push_back(
      {"sentences", "", "Score each line on its own, BLEU with effective order, as sacrebleu --sentence-level does."});
  options.push_back({"paired-bootstrap", "N",
                     "Compare each hypothesis with the first by drawing the lines anew N times; 1000 is usual."});
  options.push_back({"seed", "S", "Which resamples are drawn; 12345 unless given."});
  options.push_back({"threads", "N", "Threads to compute with; 0 for one on each core. Results do not depend on it."});
  options.push_back({"json", "", "Print JSON: an array with an object for each hypothesis."});
  return options;
}

}  // namespace

Command score_text_command() {
  return {{"score-text",
           "--reference FILE",
           "Score text against references with BLEU, chrF or chrF++.\n\n"
           "The numbers are those that sacrebleu prints with -w 2, each behind the signature of how it was made.\n\n"
           "--paired-bootstrap does what sacrebleu's --paired-bs does: mean and half-width of the interval that holds\n"
           "95 % of a score's resamples, and the p-value of its difference to the first hypothesis, the baseline:\n"
           "(1 + number of resamples with |difference| - mean |difference| > |real difference|) / (1 + N).\n"
           "The draws are Weft's own, so the last digits differ from sacrebleu's. A hypothesis that counts like the\n"
           "baseline on every line has p-value 1.",
           score_text_options(),
           {"weft score-text --hypothesis out.en --reference test.en",
            "weft score-text --hypothesis a.zh --hypothesis b.zh --reference test.zh --tokenizer zh "
            "--paired-bootstrap 1000",
            "weft translate runs/fr-en/best.safetensors --input test.fr | weft score-text --reference test.en "
            "--metric chrf++ --json"}},
          score_text};
}

}  // namespace weft

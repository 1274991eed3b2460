// weft score: how probable given translations are.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/train/commands.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/score.h"
#include "weft/train/stop_signal.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::string json_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

/// A pair as a line: log-probability, tokens with </s>, log-probability per token; "nan 0 nan" if it was skipped.
std::string text_of(const ScoredPair& pair) {
  const std::size_t tokens = pair.log_probabilities.size();
  if (!pair.skipped.empty()) return "nan\t0\tnan\n";
  return fmt::format("{:.6f}\t{}\t{:.6f}\n", pair.log_probability, tokens,
                     pair.log_probability / static_cast<double>(tokens));
}

std::string json_of(const ScoredPair& pair, Index line) {
  if (!pair.skipped.empty()) {
    return json_line({{"line", line}, {"log_probability", nullptr}, {"tokens", 0}, {"skipped", pair.skipped}});
  }
  return json_line({{"line", line},
                    {"log_probability", pair.log_probability},
                    {"tokens", pair.log_probabilities.size()},
                    {"mean", pair.log_probability / static_cast<double>(pair.log_probabilities.size())},
                    {"unknown", pair.unknown},
                    {"target", pair.target},
                    {"token_log_probabilities", pair.log_probabilities}});
}

std::string summary_text(const ScoreSummary& summary) {
  return fmt::format("{} pairs scored, {} skipped; {} tokens, log-probability {:.6f}, perplexity {}\n", summary.pairs,
                     summary.skipped, summary.tokens, summary.log_probability,
                     format_perplexity(summary.perplexity(), 6));
}

std::string summary_json(const ScoreSummary& summary) {
  Json json{{"pairs", summary.pairs},
            {"skipped", summary.skipped},
            {"tokens", summary.tokens},
            {"log_probability", summary.log_probability},
            {"perplexity", summary.perplexity()}};  // a NaN becomes null
  return json_line(json);
}

/// Scores all pairs, block by block, in the order of the lines.
ScoreSummary score_all(ModelSpan models, const ParallelText& text, const Arguments& arguments, PutText put,
                       PutText put_alignment) {
  const ScoreOptions options{models.front()->config().decoding.batch_tokens, arguments.has("alignment")};
  const bool lines_wanted = !arguments.has("summary");
  ScoreSummary summary;
  constexpr std::size_t kBlock = 1024;
  for (std::size_t begin = 0; begin < text.source.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, text.source.size());
    const auto part = [&](const std::vector<std::string>& lines) {
      return std::vector<std::string>(lines.begin() + static_cast<std::ptrdiff_t>(begin),
                                      lines.begin() + static_cast<std::ptrdiff_t>(end));
    };
    const std::vector<ScoredPair> pairs = score(models, {part(text.source), part(text.target)}, options);
    std::string block;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto line = static_cast<Index>(begin + i + 1);
      if (!pairs[i].skipped.empty()) {
        warn(fmt::format("line {}: {}; the pair has no score", line, pairs[i].skipped));
      }
      summary.add(pairs[i]);
      if (lines_wanted) block += arguments.has("json") ? json_of(pairs[i], line) : text_of(pairs[i]);
      if (options.alignments) put_alignment(pharaoh(pairs[i].alignment) + "\n");
    }
    if (lines_wanted) put(block);
  }
  return summary;
}

int score_pairs(const Arguments& arguments, const Registry& registry) {
  if (arguments.positional().empty()) arguments.only_positional();  // says what is missing
  std::vector<std::string> inputs = arguments.positional();
  for (const char* option : {"source", "target"}) inputs.push_back(arguments.text(option));
  require_outputs(arguments, {"output", "alignment"}, inputs);
  const ModelEnsemble ensemble(arguments.positional(), registry);
  for (std::size_t i = 0; i < ensemble.models().size(); ++i) {
    require_outputs(arguments, {"output", "alignment"}, all_files(ensemble.models()[i]->config().data),
                    arguments.positional()[i]);
  }
  use_threads(arguments, ensemble.first().config().training.threads);
  const ParallelText text = read_parallel(arguments.text("source"), arguments.text("target"));
  write_output(arguments.text("output", ""), [&](PutText put) {
    const auto run = [&](PutText put_alignment) {
      ScoreSummary summary;
      naming_checkpoint(arguments.positional(),
                        [&] { summary = score_all(ensemble.models(), text, arguments, put, put_alignment); });
      if (arguments.has("summary")) {
        put(arguments.has("json") ? summary_json(summary) : summary_text(summary));
      } else {
        (void)write_unless_stopped(STDERR_FILENO, "weft: " + summary_text(summary));  // which may be closed
      }
    };
    if (arguments.has("alignment")) {
      write_output(arguments.text("alignment"), run);
    } else {
      run([](const std::string&) {});
    }
  });
  return 0;
}

}  // namespace

Command score_command() {
  return {
      {"score",
       "CHECKPOINT...",
       "Say how probable given translations are. One line comes out for each pair: natural logarithm of the "
       "probability, tokens with the end token, logarithm per token. A pair with a blank side, or one longer than "
       "the model holds, gives \"nan 0 nan\" and a warning. What all pairs together have goes to standard error.",
       {{"source", "FILE", "Source text, one sentence a line."},
        {"target", "FILE", "Its translation, line by line."},
        {"output", "FILE", "Where the scores go, a file or a pipe; standard output unless given."},
        {"summary", "", "Print what all pairs together have, and no lines."},
        {"json", "", "Print a JSON object a line, with the logarithm of each token."},
        {"alignment", "FILE", "Write word alignments from attention, as weft translate does."},
        {"threads", "N", "Threads to compute with; 0 for one on each core."}},
       {"weft score runs/fr-en/best.safetensors --source my.fr --target my.en",
        "weft score runs/a/best.safetensors runs/b/best.safetensors --source my.fr --target my.en --summary --json"}},
      score_pairs};
}

}  // namespace weft

// weft evaluate: scores of checkpoints on a text.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/data/utf8.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/evaluate.h"
#include "weft/train/line_progress.h"
#include "weft/train/metric_arguments.h"
#include "weft/train/model_ensemble.h"
#include "weft/train/output_file.h"
#include "weft/train/run_data.h"
#include "weft/train/run_files.h"
#include "weft/train/text_format.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Table = std::vector<std::vector<std::string>>;

/// What to translate, and what should come out: references[r][i] is the r-th reference of source[i].
struct EvaluationText {
  std::vector<std::string> source;
  std::vector<std::vector<std::string>> references;
};

/// The results of one checkpoint.
struct Row {
  std::string checkpoint;
  Index sentences = 0;
  LossResult loss;
  Metrics metrics;
  std::vector<std::string> signatures;
  TranslationResult result;
  std::vector<LengthBucket> buckets;
  double seconds = 0;
};

/// The text that --source and --reference name; nothing if a split is asked for. Each file is read once: it may be a pipe.
std::optional<EvaluationText> given_text(const Arguments& arguments) {
  if (arguments.has("source") != arguments.has("reference")) {
    arguments.refuse("--source and --reference go together");
  }
  if (arguments.has("source") && arguments.has("split")) {
    arguments.refuse("give --split, or --source and --reference, not both");
  }
  if (!arguments.has("source")) return std::nullopt;
  const std::string source = arguments.text("source");
  const std::vector<std::string> lines = read_lines(source);
  EvaluationText all;
  for (const std::string& path : arguments.all("reference")) {
    ParallelText text = read_parallel(lines, source, path);
    if (all.references.empty() || text.source.size() < all.source.size()) all.source = text.source;
    all.references.push_back(std::move(text.target));
  }
  // What some references have beyond the last line of others is blank, or has a blank source.
  for (auto& reference : all.references) reference.resize(all.source.size());
  return all;
}

EvaluationText split_text(const Arguments& arguments, const Checkpoint& checkpoint) {
  const RunText run_text(checkpoint.model->config().data);
  const std::uint64_t held_out = checkpoint.state.held_out_hash;
  if (held_out != 0 && run_text.held_out_hash() != held_out) {
    throw DataError(
        "evaluate: the training text is not that of this run, so other pairs would be held out of it; restore it, or "
        "give --source and --reference");
  }
  ParallelText text = run_text.split(arguments.text("split", "test"));
  return {std::move(text.source), {std::move(text.target)}};
}

/// Throws, before anything is translated, for an output that cannot come to be.
void check_output(const Arguments& arguments) {
  if (arguments.has("output") && arguments.positional().size() > 1) {
    throw ConfigError(
        fmt::format("evaluate: --output keeps the translations of one checkpoint, found {}; evaluate "
                    "them one by one",
                    arguments.positional().size()));
  }
  std::vector<std::string> inputs = arguments.positional();
  for (const char* option : {"source", "reference"}) {
    for (const std::string& file : arguments.all(option)) inputs.push_back(file);
  }
  require_outputs(arguments, {"output"}, inputs);
}

Row evaluate_one(const std::string& path, const Arguments& arguments, const std::optional<EvaluationText>& given,
                 const Registry& registry) {
  const auto began = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = load_checkpoint(path, registry);
  const TranslationModel& model = *checkpoint.model;
  require_outputs(arguments, {"output"}, all_files(model.config().data), path);
  const DecodingConfig& decoding = model.config().decoding;
  use_threads(arguments, model.config().training.threads);
  Row row;
  row.checkpoint = path;
  BleuOptions bleu;
  bleu.tokenizer = bleu_tokenizer(decoding.bleu_tokenizer);
  row.metrics = metrics_of(arguments, bleu);
  const auto own = given ? std::nullopt : std::optional(split_text(arguments, checkpoint));
  const EvaluationText& text = given ? *given : *own;
  for (const auto& metric : row.metrics) row.signatures.push_back(signature(*metric, text.references.size()));
  SearchOptions options = search_options(decoding);
  options.beam = arguments.whole("beam", decoding.beam, 1, kWidestBeam);
  const EncodedCorpus encoded =
      encode_text(model, {text.source, text.references.front()}, model.longest_sentence(), "the text", true);
  row.sentences = static_cast<Index>(text.source.size());
  naming_checkpoint(std::span(&path, 1), [&] {
    row.loss = evaluate_loss(model, encoded.corpus, model.config().training.batch_tokens);
    if (row.loss.tokens > 0 && std::isnan(row.loss.loss)) throw NotANumberError(0);
    LineProgress progress(stderr, true, row.sentences);
    row.result = evaluate_translations(model, text.source, text.references, row.metrics, options, decoding.batch_tokens,
                                       &progress);
  });
  if (row.result.cut_lines > 0) {
    warn(fmt::format(
        "{}: {} line{} of more than the {} tokens that the model holds; cut for its translation, left out of "
        "the loss",
        path, row.result.cut_lines, row.result.cut_lines == 1 ? "" : "s", model.longest_sentence()));
  }
  if (arguments.has("by-length")) {
    std::vector<Index> lengths;
    for (const std::string& line : text.source) {
      lengths.push_back(is_blank(line) ? 0 : static_cast<Index>(model.source_tokenizer().split(line).size()));
    }
    row.buckets = buckets_by_length(lengths);
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return row;
}

Json to_json(const Row& row) {
  Json json{{"checkpoint", row.checkpoint},
            {"sentences", row.sentences},
            {"loss", row.loss.loss},
            {"perplexity", row.loss.perplexity},
            {"token_accuracy", row.loss.token_accuracy},
            {"exact_match", share_of(row.result.exact)}};
  Json signatures;
  for (std::size_t m = 0; m < row.metrics.size(); ++m) {
    json[row.metrics[m]->key()] = row.metrics[m]->score(row.result.counts[m].sums());
    signatures[row.metrics[m]->key()] = row.signatures[m];
  }
  json["signatures"] = signatures;
  for (const LengthBucket& bucket : row.buckets) {
    Json scores{{"source_tokens", bucket.name},
                {"sentences", bucket.lines.size()},
                {"exact_match", share_of(row.result.exact, bucket.lines)}};
    for (std::size_t m = 0; m < row.metrics.size(); ++m) {
      scores[row.metrics[m]->key()] = row.metrics[m]->score(row.result.counts[m].sums(bucket.lines));
    }
    json["by_length"].push_back(scores);
  }
  json["seconds"] = row.seconds;
  return json;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

/// The lines that say how the scores of a metric were made, which may differ by checkpoint.
std::string signature_lines(const std::vector<Row>& rows, std::size_t metric) {
  std::vector<std::pair<std::string, std::string>> made;  // signature, checkpoints
  for (const Row& row : rows) {
    const auto known =
        std::find_if(made.begin(), made.end(), [&](const auto& one) { return one.first == row.signatures[metric]; });
    if (known == made.end()) {
      made.emplace_back(row.signatures[metric], show_controls(row.checkpoint));
    } else {
      known->second += ", " + show_controls(row.checkpoint);
    }
  }
  std::string text;
  for (const auto& [signature, checkpoints] : made) {
    text += fmt::format("{}{}: {}\n", rows.front().metrics[metric]->name(), made.size() > 1 ? " of " + checkpoints : "",
                        signature);
  }
  return text;
}

std::string length_table(const Row& row) {
  Table table{{"source tokens", "sentences", "exact match"}};
  for (const auto& metric : row.metrics) table.front().push_back(metric->name());
  for (const LengthBucket& bucket : row.buckets) {
    table.push_back({bucket.name, format_count(static_cast<Index>(bucket.lines.size())),
                     percent(share_of(row.result.exact, bucket.lines))});
    for (std::size_t m = 0; m < row.metrics.size(); ++m) {
      table.back().push_back(fmt::format("{:.2f}", row.metrics[m]->score(row.result.counts[m].sums(bucket.lines))));
    }
  }
  const std::string alignment(table.front().size(), 'r');
  return fmt::format("\n{} by length\n{}", show_controls(row.checkpoint), format_table(table, alignment));
}

std::string to_text(const std::vector<Row>& rows) {
  Table table{{"checkpoint", "sentences", "loss", "perplexity", "token accuracy", "exact match"}};
  for (const auto& metric : rows.front().metrics) table.front().push_back(metric->name());
  table.front().push_back("time");
  for (const Row& row : rows) {
    table.push_back({show_controls(row.checkpoint), format_count(row.sentences), fmt::format("{:.4f}", row.loss.loss),
                     format_perplexity(row.loss.perplexity), percent(row.loss.token_accuracy),
                     percent(share_of(row.result.exact))});
    for (std::size_t m = 0; m < row.metrics.size(); ++m) {
      table.back().push_back(fmt::format("{:.2f}", row.metrics[m]->score(row.result.counts[m].sums())));
    }
    table.back().push_back(format_duration(row.seconds));
  }
  std::string alignment(table.front().size(), 'r');
  alignment.front() = 'l';
  std::string text = format_table(table, alignment);
  for (std::size_t m = 0; m < rows.front().metrics.size(); ++m) text += signature_lines(rows, m);
  for (const Row& row : rows) text += row.buckets.empty() ? "" : length_table(row);
  return text;
}

int evaluate(const Arguments& arguments, const Registry& registry) {
  if (arguments.positional().empty()) arguments.only_positional();  // says what is missing
  check_output(arguments);
  metrics_of(arguments, {});  // says what is wrong before a checkpoint is read
  const std::optional<EvaluationText> given = given_text(arguments);
  std::vector<Row> rows;
  for (const std::string& path : arguments.positional()) rows.push_back(evaluate_one(path, arguments, given, registry));
  if (arguments.has("output")) {
    write_output(arguments.text("output"), [&](PutText put) {
      for (const std::string& line : rows.front().result.translations) put(line + "\n");
    });
  }
  if (arguments.has("json")) {
    Json json = Json::array();
    for (const Row& row : rows) json.push_back(to_json(row));
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");  // a path may be any bytes
  } else {
    print(to_text(rows));
  }
  return 0;
}

std::vector<Option> evaluate_options() {
  std::vector<Option> options{
      {"split", "NAME",
       "Text of the checkpoint's own configuration: test (unless given), valid, or another of its toy task."},
      {"source", "FILE", "Source text, one sentence a line, instead of a split."},
      {"reference", "FILE",
       "Its translation. May be repeated: then the scores take all of them, the loss that of the first."}};
  for (const Option& option : metric_options("decoding.bleu_tokenizer of the checkpoint")) options.push_back(option);
  options.push_back({"by-length", "", "Print the scores also by source length, in tokens of the model."});
  options.push_back({"output", "FILE", "Keep the translations in a file; for one checkpoint only."});
  options.push_back({"beam", "N", "Hypotheses kept by the search; 1 for greedy search."});
  options.push_back({"threads", "N", "Threads to compute with; 0 for one on each core."});
  options.push_back({"json", "", "Print JSON: an array with an object for each checkpoint."});
  return options;
}

}  // namespace

Command evaluate_command() {
  return {{"evaluate",
           "CHECKPOINT...",
           "Score checkpoints on a text: loss, perplexity and token accuracy of the references, exact match, BLEU and "
           "chrF of the translations.",
           evaluate_options(),
           {"weft evaluate runs/fr-en/best.safetensors",
            "weft evaluate runs/fr-en/best.safetensors runs/fr-en/last.safetensors --split valid --json",
            "weft evaluate runs/fr-en/best.safetensors --source my.fr --reference my.en --by-length --output out.en"}},
          evaluate};
}

}  // namespace weft

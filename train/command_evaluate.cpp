// weft evaluate: scores of checkpoints on a text.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/data/text_file.h"
#include "weft/train/bleu.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/evaluate.h"
#include "weft/train/run_data.h"
#include "weft/train/text_format.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

struct Row {
  std::string checkpoint;
  Index sentences;
  LossResult loss;
  TranslationResult translations;
  double seconds;
};

ParallelText text_of(const Arguments& arguments, const Config& config) {
  if (arguments.has("source") != arguments.has("reference")) {
    throw ConfigError("evaluate: --source and --reference go together; see weft evaluate --help");
  }
  if (arguments.has("source") && arguments.has("split")) {
    throw ConfigError("evaluate: give --split, or --source and --reference, not both; see weft evaluate --help");
  }
  if (arguments.has("source")) return read_parallel(arguments.text("source"), arguments.text("reference"));
  return RunText(config.data).split(arguments.text("split", "test"));
}

Row evaluate_one(const std::string& path, const Arguments& arguments, const Registry& registry) {
  const auto began = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = load_checkpoint(path, registry);
  const TranslationModel& model = *checkpoint.model;
  const DecodingConfig& decoding = model.config().decoding;
  use_threads(arguments, model.config().training.threads);
  const ParallelText text = text_of(arguments, model.config());
  SearchOptions options = search_options(decoding);
  options.beam = arguments.whole("beam", decoding.beam, 1, kWidestBeam);
  const EncodedCorpus encoded = encode_text(model, text, model.longest_sentence(), "the text");
  Row row{path, static_cast<Index>(text.source.size()),
          evaluate_loss(model, encoded.corpus, model.config().training.batch_tokens),
          evaluate_translations(model, text, options, decoding.batch_tokens), 0};
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return row;
}

int evaluate(const Arguments& arguments, const Registry& registry) {
  if (arguments.positional().empty()) arguments.only_positional();  // says what is missing
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> table{
      {"checkpoint", "sentences", "loss", "perplexity", "token accuracy", "exact match", "BLEU", "time"}};
  for (const std::string& path : arguments.positional()) {
    const Row row = evaluate_one(path, arguments, registry);
    json.push_back({{"checkpoint", row.checkpoint},
                    {"sentences", row.sentences},
                    {"loss", row.loss.loss},
                    {"perplexity", row.loss.perplexity},
                    {"token_accuracy", row.loss.token_accuracy},
                    {"exact_match", row.translations.exact_match},
                    {"bleu", row.translations.bleu},
                    {"seconds", row.seconds}});
    table.push_back({row.checkpoint, format_count(row.sentences), fmt::format("{:.4f}", row.loss.loss),
                     fmt::format("{:.3f}", row.loss.perplexity), fmt::format("{:.2f} %", 100 * row.loss.token_accuracy),
                     fmt::format("{:.2f} %", 100 * row.translations.exact_match),
                     fmt::format("{:.2f}", row.translations.bleu), format_duration(row.seconds)});
  }
  if (arguments.has("json")) {
    print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n");  // a path may be any bytes
  } else {
    print(format_table(table, "lrrrrrrr") + "BLEU: " + bleu_signature({}, 1) + "\n");
  }
  return 0;
}

}  // namespace

Command evaluate_command() {
  return {{"evaluate",
           "CHECKPOINT...",
           "Score checkpoints on a text: loss, perplexity and token accuracy of the references, exact match and BLEU "
           "of the "
           "translations.",
           {{"split", "NAME",
             "Text of the checkpoint's own configuration: test (unless given), valid, or another of its "
             "toy task."},
            {"source", "FILE", "Source text, one sentence a line, instead of a split."},
            {"reference", "FILE", "Its translation."},
            {"beam", "N", "Hypotheses kept by the search; 1 for greedy search."},
            {"threads", "N", "Threads to compute with; 0 for one on each core."},
            {"json", "", "Print JSON: an array with an object for each checkpoint."}},
           {"weft evaluate runs/fr-en/best.safetensors",
            "weft evaluate runs/fr-en/best.safetensors runs/fr-en/last.safetensors --split valid --json",
            "weft evaluate runs/fr-en/best.safetensors --source my.fr --reference my.en"}},
          evaluate};
}

}  // namespace weft

// weft inspect: what a checkpoint holds.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weft/data/subword_model.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(TranslationModel& model, const TrainingState& state) {
  Json parameters = Json::array();
  for (const ParameterEntry& entry : model.parameters().entries()) {
    Json shape = Json::array();
    for (int d = 0; d < entry.shape.rank(); ++d) shape.push_back(entry.shape[d]);
    parameters.push_back({{"name", entry.name}, {"shape", shape}});
  }
  Json subwords;
  for (const auto& [side, vocabulary] :
       {std::pair("source", &model.source_vocabulary()), std::pair("target", &model.target_vocabulary())}) {
    if (const auto& one = vocabulary->subwords()) {
      subwords[side] = {{"kind", one->kind()}, {"pieces", one->tokens().size()}, {"bytes", one->bytes().size()}};
    }
  }
  Json json{{"config", Json::parse(config_json(model.config()))},
            {"parameters", parameters},
            {"parameter_count", model.parameters().count()},
            {"source_vocabulary", model.source_vocabulary().size()},
            {"target_vocabulary", model.target_vocabulary().size()},
            {"step", state.step},
            {"epoch", state.epoch + 1},
            {"best_step", state.best_step},
            {"validations", Json::parse(training_json(state)).at("validations")}};
  if (!subwords.is_null()) json["subwords"] = subwords;
  return json;
}

/// What the vocabularies consist of, where they come from subword models.
std::string subwords_text(const TranslationModel& model) {
  const auto &source = model.source_vocabulary().subwords(), &target = model.target_vocabulary().subwords();
  if (source == nullptr) return "";
  const auto text = [](const char* side, const SubwordModel& one) {
    return fmt::format("subwords: {}, {}, {} pieces, {}\n", side, one.kind(),
                       format_count(static_cast<Index>(one.tokens().size())),
                       format_bytes(static_cast<Index>(one.bytes().size())));
  };
  return source == target ? text("both sides", *source) : text("source", *source) + text("target", *target);
}

std::string to_text(TranslationModel& model, const TrainingState& state) {
  std::vector<std::vector<std::string>> parameters{{"parameter", "shape", "numbers"}};
  for (const ParameterEntry& entry : model.parameters().entries()) {
    parameters.push_back({entry.name, to_string(entry.shape), format_count(entry.shape.size())});
  }
  parameters.push_back({"all", "", format_count(model.parameters().count())});
  std::vector<std::vector<std::string>> history{
      {"step", "loss", "perplexity", "token accuracy", "exact match", "BLEU", "chrF", ""}};
  for (const ValidationEntry& v : state.validations) {
    history.push_back({format_count(v.step), fmt::format("{:.4f}", v.loss), format_perplexity(v.perplexity),
                       fmt::format("{:.2f} %", 100 * v.token_accuracy), fmt::format("{:.2f} %", 100 * v.exact_match),
                       fmt::format("{:.2f}", v.bleu), fmt::format("{:.2f}", v.chrf),
                       v.step == state.best_step ? "best" : ""});
  }
  return fmt::format(
      "configuration\n{}\nparameters\n{}\nvocabulary: {} source, {} target tokens\n{}\n"
      "training: step {}, epoch {}\n{}",
      config_json(model.config()), format_table(parameters, "llr"), format_count(model.source_vocabulary().size()),
      format_count(model.target_vocabulary().size()), subwords_text(model), format_count(state.step), state.epoch + 1,
      format_table(history, "rrrrrrrl"));
}

int inspect(const Arguments& arguments, const Registry& registry) {
  require_not_printed_to(arguments.positional());
  const Checkpoint checkpoint = load_checkpoint(arguments.only_positional(), registry, Numbers::kAny);
  require_not_printed_to(all_files(checkpoint.model->config().data));
  print(arguments.has("json") ? to_json(*checkpoint.model, checkpoint.state).dump(2) + "\n"
                              : to_text(*checkpoint.model, checkpoint.state));
  return 0;
}

}  // namespace

Command inspect_command() {
  return {{"inspect",
           "CHECKPOINT",
           "Show what a checkpoint holds: configuration, parameters, vocabulary sizes, training history.",
           {{"json", "", "Print JSON."}},
           {"weft inspect runs/fr-en/best.safetensors"}},
          inspect};
}

}  // namespace weft

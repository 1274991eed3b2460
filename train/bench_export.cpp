#include "weft/train/bench_export.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/train/bench_batches.h"
#include "weft/train/checkpoint.h"
#include "weft/train/output_file.h"
#include "weft/train/run_folder.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kStepFile = "work.json";
constexpr const char* kDecodeFile = "decode.json";

/// Sentences cut out of the tokens of a batch.
Json sentences(const std::vector<TokenId>& tokens, const Ragged& rows) {
  Json all = Json::array();
  for (Index s = 0; s < rows.sequences(); ++s) {
    all.push_back(std::vector<TokenId>(tokens.begin() + rows.begin(s), tokens.begin() + rows.end(s)));
  }
  return all;
}

/// What both exports begin with.
Json describe(TranslationModel& model) {
  return {{"config", Json::parse(config_json(model.config()))},
          {"source_vocabulary", model.source_vocabulary().size()},
          {"target_vocabulary", model.target_vocabulary().size()},
          {"parameters", model.parameters().count()}};
}

/// Makes the folder, and throws ConfigError if what is there may not be replaced: before the work.
void prepare(const std::filesystem::path& folder, const char* name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw DataError(
        fmt::format("{}: cannot be made ({}); choose another folder with --export", folder.string(), error.message()));
  }
  for (const std::filesystem::path& file : {folder / name, folder / kModelFile}) {
    require_not_protected(file, file.string());
    if (is_run_checkpoint(end_of_links(file))) {
      throw ConfigError(
          fmt::format("{}: leads to the checkpoint of a run; choose another folder with --export", file.string()));
    }
  }
}

void write(TranslationModel& model, const std::filesystem::path& folder, const char* name, const Json& work) {
  write_file_atomically(folder / name, [&](FileWriter& file) { file.write(work.dump() + "\n"); });
  save_checkpoint(folder / kModelFile, model, {}, nullptr);
}

}  // namespace

void export_bench_step(TranslationModel& model, const std::filesystem::path& folder) {
  prepare(folder, kStepFile);
  Json work = describe(model);
  for (const Batch& batch : make_bench_batches(model.config())) {
    work["batches"].push_back({{"source", sentences(batch.source, batch.source_rows)},
                               {"decoder_input", sentences(batch.decoder_input, batch.target_rows)},
                               {"target", sentences(batch.target, batch.target_rows)}});
    const auto smoothing = static_cast<real>(model.config().training.label_smoothing);
    const Var loss = model.transformer().loss(
        Context{}, {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
        {smoothing, 1 / static_cast<real>(batch.target_rows.rows()), nullptr});
    work["losses"].push_back(loss.value().item());
  }
  write(model, folder, kStepFile, work);
}

void export_bench_decode(TranslationModel& model, const DecodeBenchOptions& options,
                         const std::filesystem::path& folder) {
  prepare(folder, kDecodeFile);
  Json work = describe(model);
  work["length"] = options.length;
  for (const Index beam : {1, 4}) {
    const DecodeBenchText text = bench_decode_text(model.transformer(), options, beam);
    work["sources"] = text.sources;
    work["outputs"][std::to_string(beam)] = text.outputs;
  }
  write(model, folder, kDecodeFile, work);
}

}  // namespace weft

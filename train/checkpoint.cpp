#include "weft/train/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weft/autograd/anomaly.h"
#include "weft/core/error.h"
#include "weft/core/safetensors.h"
#include "weft/data/subword_model.h"
#include "weft/train/base64.h"
#include "weft/train/config_reader.h"
#include "weft/train/json_text.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

constexpr const char* kFormat = "1";
constexpr const char* kAverage = "average.values";

std::vector<Index> lengths(const Shape& shape) {
  std::vector<Index> lengths;
  for (int d = 0; d < shape.rank(); ++d) lengths.push_back(shape[d]);
  return lengths;
}

const std::string& metadata(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    throw CheckpointError(
        fmt::format("{}: not a checkpoint of Weft: it has no \"{}\"; give a .safetensors file that weft "
                    "train wrote",
                    file.path().string(), key));
  }
  return found->second;
}

TrainingState training_state(const SafetensorsFile& file) {
  const std::string name = file.path().string();
  return parse_training_state(metadata(file, "weft.training"), name);
}

/// Runs `read`, with an error that names the file for metadata of other shapes.
template <class Read>
auto read_metadata(const std::filesystem::path& path, Read read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        fmt::format("{}: its metadata are not those of a checkpoint ({})", path.string(), shortened(error.what())));
  }
}

SafetensorsFile open(const std::filesystem::path& path) {
  SafetensorsFile file = SafetensorsFile::open(path, {.require_checksum = true});
  const std::string& format = metadata(file, "weft.format");
  if (format != kFormat) {
    throw CheckpointError(fmt::format("{}: format {} of another version of Weft; this one reads format {}",
                                      path.string(), clip_text(show_controls(format), 40), kFormat));
  }
  return file;
}

Vocabulary vocabulary(const SafetensorsFile& file, const std::string& key) {
  const std::string name = file.path().string() + ": " + key;
  Index rows = 0;  // the most of a tensor: an embedding has one for each token
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.shape.empty()) rows = std::max(rows, entry.shape.front());
  }
  auto tokens = read_json_strings(metadata(file, key), static_cast<std::size_t>(rows));
  if (!tokens) {
    throw CheckpointError(
        name + ": its metadata are not those of a checkpoint (not a list of tokens, each with a row of a tensor)");
  }
  try {
    return Vocabulary::from_tokens(std::move(*tokens), name);
  } catch (const DataError& error) {
    throw CheckpointError(shortened(error.what()));  // a token may be as long as the file
  }
}

Vocabulary subword_vocabulary(const SafetensorsFile& file, const std::string& key) {
  const std::string name = file.path().string() + ": " + key;
  std::optional<std::string> bytes = from_base64(metadata(file, key));
  if (!bytes) throw CheckpointError(name + ": not base64; the checkpoint was altered");
  try {
    return Vocabulary::from_subwords(SubwordModel::load(std::move(*bytes), name));
  } catch (const DataError& error) {
    const std::string what = error.what();
    throw CheckpointError(what.starts_with(name) ? what : name + ": " + what);
  }
}

/// The vocabularies of both sides as the tokenizer needs them.
std::pair<Vocabulary, Vocabulary> vocabularies(const SafetensorsFile& file, const DataConfig& config) {
  if (!uses_subwords(config.tokenizer)) {
    return {vocabulary(file, "weft.source_vocabulary"), vocabulary(file, "weft.target_vocabulary")};
  }
  const Vocabulary source = subword_vocabulary(file, "weft.source_subwords");
  const bool shared = file.metadata().count("weft.target_subwords") == 0;
  return {source, shared ? source : subword_vocabulary(file, "weft.target_subwords")};
}

void set_vocabularies(SafetensorsWriter& writer, const Vocabulary& source, const Vocabulary& target) {
  if (source.subwords() == nullptr) {
    writer.set_metadata("weft.source_vocabulary", json_strings(source.tokens()));
    writer.set_metadata("weft.target_vocabulary", json_strings(target.tokens()));
    return;
  }
  const std::string &first = source.subwords()->bytes(), &second = target.subwords()->bytes();
  writer.set_metadata("weft.source_subwords", to_base64(first));
  if (second != first) writer.set_metadata("weft.target_subwords", to_base64(second));
}

void require_tensor(const SafetensorsFile& file, const std::string& name, const std::vector<Index>& shape) {
  if (file.find(name) != nullptr && file.shape(name) == shape) return;
  throw CheckpointError(
      fmt::format("{}: no tensor {} of shape [{}], which its configuration asks for; was it written by "
                  "a program with other layers?",
                  file.path().string(), name, fmt::join(shape, ", ")));
}

/// Makes the model, after its sizes were found to be those of the tensors of the file: first its width, by which modules
/// are made, then all parameters, before memory is taken for them.
std::unique_ptr<TranslationModel> make_model(const SafetensorsFile& file, Config config, Vocabulary source,
                                             Vocabulary target, const Registry& registry) {
  require_tensor(file, "target_embedding.weight", {target.size(), config.model.d_model});
  try {
    auto model = std::make_unique<TranslationModel>(std::move(config), std::move(source), std::move(target), registry);
    for (const ParameterEntry& entry : model->parameters().entries()) {
      require_tensor(file, entry.name, lengths(entry.shape));
    }
    return model;
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", file.path().string(), error.what()));
  }
}

/// Reads a tensor to work with: the counterpart of require_finite.
void read_finite(const SafetensorsFile& file, const std::string& name, const Shape& shape, std::span<real> values) {
  file.read(name, values);
  const Index bad = first_not_finite(values);
  if (bad < 0) return;
  throw CheckpointError(fmt::format("{}: {}{} is {}; all numbers must be finite; use an earlier checkpoint of the run",
                                    file.path().string(), name, element_index(shape, bad),
                                    values[static_cast<std::size_t>(bad)]));
}

void read_parameters(const SafetensorsFile& file, ParameterSet& parameters, Numbers numbers = Numbers::kFinite) {
  for (const ParameterEntry& entry : parameters.entries()) {
    Tensor value = parameters.value(entry);
    if (numbers == Numbers::kAny) {
      file.read(entry.name, value.values());
    } else {
      read_finite(file, entry.name, entry.shape, value.values());
    }
  }
}

/// Throws unless all numbers are finite: the last guard before a file.
void require_finite(const std::filesystem::path& path, const std::string& name, std::span<const real> values) {
  if (first_not_finite(values) < 0) return;
  throw Error(fmt::format("{}: not written: {} holds a number that is not finite; go on from an earlier checkpoint, or see "
                          "docs/divergence.md",
                          path.string(), name));
}

void require_state(const SafetensorsFile& file, const std::string& key) {
  if (file.find(key) != nullptr) return;
  throw CheckpointError(
      fmt::format("{}: no tensor {}; training can go on from a last.safetensors only", file.path().string(), key));
}

/// Reads what training goes on with.
void read_state(const SafetensorsFile& file, const std::string& key, std::span<real> values) {
  require_state(file, key);
  read_finite(file, key, {static_cast<Index>(values.size())}, values);
}

}  // namespace

void require_room_in_header(const Vocabulary& source, const Vocabulary& target) {
  if (source.subwords() != nullptr) return;  // the models have limits of their own
  constexpr std::uint64_t kMost = kMostHeaderBytes / 10 * 9;  // the rest is for all else
  std::uint64_t bytes = 0;
  for (const Vocabulary* vocabulary : {&source, &target}) {
    const auto quotes = 4 * static_cast<std::uint64_t>(vocabulary->size());  // each escaped once more
    bytes += json_strings(vocabulary->tokens()).size() + quotes;
  }
  if (bytes <= kMost) return;
  throw ConfigError(fmt::format("the vocabularies take {} MB of the {} MB that a checkpoint's header has for them; lower "
                                "data.max_vocabulary, or use data.tokenizer \"bpe\"",
                                (bytes + 999'999) / 1'000'000, kMost / 1'000'000));
}

void save_checkpoint(const std::filesystem::path& path, TranslationModel& model, const TrainingState& state,
                     Optimizer* optimizer, std::span<const real> average) {
  SafetensorsWriter writer;
  const Config& config = model.config();
  writer.set_metadata("weft.format", kFormat);
  writer.set_metadata("weft.config", config_json(config));
  set_vocabularies(writer, model.source_vocabulary(), model.target_vocabulary());
  writer.set_metadata("weft.training", training_json(state));
  writer.set_metadata("weft.step", fmt::format("{}", state.step));
  writer.set_metadata("weft.seed", fmt::format("{}", config.training.seed));
  writer.set_metadata("weft.best_score", fmt::format("{}", best_score(state, config.training.best_metric)));
  std::vector<Tensor> values;  // keep the views alive until written
  for (const ParameterEntry& entry : model.parameters().entries()) {
    values.push_back(model.parameters().value(entry));
    require_finite(path, entry.name, values.back().values());
    writer.add(entry.name, lengths(entry.shape), std::as_const(values.back()).values());
  }
  if (optimizer != nullptr) {
    for (const auto& [name, buffer] : optimizer->state()) {
      require_finite(path, "optimizer." + name, buffer);
      writer.add("optimizer." + name, {static_cast<Index>(buffer.size())}, std::span<const real>(buffer));
    }
  }
  require_finite(path, kAverage, average);
  if (!average.empty()) writer.add(kAverage, {static_cast<Index>(average.size())}, average);
  writer.write(path);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const Registry& registry, Numbers numbers) {
  const SafetensorsFile file = open(path);
  return read_metadata(path, [&] {
    Config config = parse_config(metadata(file, "weft.config"), path.string() + ": weft.config");
    Checkpoint checkpoint;
    checkpoint.state = training_state(file);
    auto [source, target] = vocabularies(file, config.data);
    checkpoint.model = make_model(file, std::move(config), std::move(source), std::move(target), registry);
    read_parameters(file, checkpoint.model->parameters(), numbers);
    return checkpoint;
  });
}

TrainingState load_state(const std::filesystem::path& path) {
  const SafetensorsFile file = open(path);
  return read_metadata(path, [&] { return training_state(file); });
}

void load_parameters(const std::filesystem::path& path, TranslationModel& model) {
  read_parameters(open(path), model.parameters());
}

void require_training_tensors(const std::filesystem::path& path, TranslationModel& model) {
  const SafetensorsFile file = open(path);
  const Config& config = model.config();
  const auto require = [&](const std::string& key) {
    require_state(file, key);
    require_tensor(file, key, {model.parameters().size()});
  };
  OptimizerOptions options;  // what there is of state depends on these two
  options.name = config.optimizer.name;
  options.momentum = config.optimizer.momentum;
  const auto optimizer = make_optimizer(options, 1);
  for (const auto& state : optimizer->state()) require("optimizer." + state.first);
  if (config.training.ema_decay > 0) require(kAverage);
}

void load_optimizer(const std::filesystem::path& path, Optimizer& optimizer) {
  const SafetensorsFile file = open(path);
  for (const auto& [name, buffer] : optimizer.state()) read_state(file, "optimizer." + name, buffer);
}

void load_average(const std::filesystem::path& path, std::span<real> average) {
  read_state(open(path), kAverage, average);
}

}  // namespace weft

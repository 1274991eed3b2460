// The configuration of a run: plain structs whose initial values are the defaults. A Config made by
// load_config or parse_config has passed every check of config_table.cpp, where each key's meaning and
// allowed values stand.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/types.h"
#include "weft/data/text_files.h"
#include "weft/nn/transformer.h"

namespace weft {

inline constexpr Index kLargestSeed = 9007199254740991;  ///< 2^53 - 1: exact in every JSON reader

/// Where the text comes from and how it is cut into tokens.
struct DataConfig {
  std::string task;
  Index pairs = 0;
  Index seed = 1;
  std::string train_source;
  std::string train_target;
  std::string valid_source;
  std::string valid_target;
  std::string test_source;
  std::string test_target;
  std::vector<TextFiles> train;
  std::vector<TextFiles> valid;
  std::vector<TextFiles> test;
  Index hold_out_valid = 0;
  Index hold_out_test = 0;
  std::string cache;
  std::string tokenizer = "word";
  bool lowercase = false;
  Index min_count = 1;
  Index max_vocabulary = 32000;
  bool shared_vocabulary = false;
  std::string subword_model;
  std::string source_subword_model;
  std::string target_subword_model;
  bool byte_fallback = false;
  double character_coverage = 1.0;
  double subword_sampling = 0.0;
  Index max_length = 256;
};

/// The Transformer: its sizes, and the names of the layers that fill its slots. The vocabularies come from the data.
using ModelConfig = TransformerOptions;

/// How gradients change the parameters.
struct OptimizerConfig {
  std::string name = "adam";
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0.0;
  double momentum = 0.0;
  double clip_norm = 1.0;
};

/// How the learning rate changes from update to update.
struct ScheduleConfig {
  std::string name = "inverse_sqrt";
  Index warmup_steps = 400;
  double final_ratio = 0.0;
  double factor = 0.5;
  Index patience = 2;
};

/// The longest time that a run may be given, in minutes: ten weeks.
inline constexpr double kMostMinutes = 100'000;

/// How long to train, on how much at once, and when to look at the result.
struct TrainingConfig {
  Index seed = 1;
  Index steps = 1000;
  double minutes = 0;
  Index batch_tokens = 2048;
  std::string memory;
  Index accumulate = 1;
  double label_smoothing = 0.1;
  Index validate_every = 200;
  Index log_every = 20;
  Index save_every = 0;
  Index validation_sentences = 0;
  std::string best_metric = "loss";
  Index patience = 0;
  Index keep_best = 1;
  Index keep_last = 0;
  double ema_decay = 0;
  Index samples = 3;
  std::string on_divergence = "stop";
  bool detect_anomaly = false;
  std::string warm_start;
  Index threads = 0;
};

/// The widest beam of any search.
inline constexpr Index kWidestBeam = 1024;

/// How a trained model writes its output.
struct DecodingConfig {
  Index beam = 4;
  double length_penalty = 0.6;
  double max_length_ratio = 2.0;
  Index max_length_extra = 10;
  Index min_length = 0;
  Index max_length = 0;
  Index no_repeat_ngram = 0;
  bool replace_unknown = false;
  Index batch_tokens = 4096;
  std::string bleu_tokenizer = "13a";
};

/// The synthetic work of `weft bench`.
struct BenchConfig {
  Index vocabulary = 8000;
  Index target_tokens = 2048;
  std::string lengths = "realistic";
};

/// Everything that a run is told. To add a key: one member above, one row in config_table.cpp.
struct Config {
  DataConfig data;
  ModelConfig model;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainingConfig training;
  DecodingConfig decoding;
  BenchConfig bench;
};

/// Reads a JSON file (comments and a byte order mark are allowed; an absent key keeps its default), then
/// applies overrides such as "model.d_model=256" in order. An override's value is read as JSON if that gives
/// the key's type, else as a string. Throws ConfigError: either the place of a JSON syntax error, or every
/// other problem of file and overrides at once, one a line.
Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides = {});

/// Does the same for JSON text that errors call `name`.
Config parse_config(std::string_view json, std::string_view name, std::span<const std::string> overrides = {});

/// Checks that the config says what to train on: a toy task, or files for training and for validation.
/// Throws ConfigError that names what is missing.
void require_training_data(const Config& config);

/// Writes every key, indented, in the order of the table. parse_config gives the same config back, exactly.
std::string config_json(const Config& config);

/// Writes the reference of all keys in Markdown, which docs/config.md holds.
std::string config_docs();

/// Lists the keys that differ, each as "optimizer.learning_rate: 0.001 -> 0.002", in the order of the table.
std::vector<std::string> config_differences(const Config& before, const Config& after);

}  // namespace weft

// Any text as a configuration file; parts after the first are overrides.
#include "targets.h"
#include "weft/core/error.h"
#include "weft/train/config.h"

namespace weft {
namespace {

void run(const std::string& bytes) {
  const std::vector<std::string> parts = fuzz_parts(bytes);
  Config config;
  try {
    config = parse_config(parts[0], "fuzz", std::span(parts).subspan(1));
  } catch (const ConfigError&) {
    return;
  }
  const std::string json = config_json(config);
  const Config again = parse_config(json, "again");
  fuzz_require(config_differences(config, again).empty(), "a configuration is read as it was written");
  fuzz_require(config_json(again) == json, "a configuration is written as it was read");
}

std::vector<std::string> seeds() {
  return {
      "{}",
      config_json({}),
      "\xEF\xBB\xBF// notes\n{\"model\": {\"d_model\": 64, \"heads\": 8, \"norm_first\": true}, /* more */\n"
      " \"optimizer\": {\"learning_rate\": 1e-3, \"name\": \"adamw\", \"weight_decay\": 0.01}}",
      R"({"data": {"train": [{"source": "a", "target": "b"}, {"tsv": "c", "source_column": 2, "target_column": 1}],)"
      R"( "valid": [], "tokenizer": "bpe", "max_vocabulary": 100}})",
      std::string("{}") + kFuzzPart + "model.d_model=32" + kFuzzPart + "decoding.bleu_tokenizer=zh" + kFuzzPart +
          "data.task=copy",
      R"({"model": {"d_model": 1e9, "max_length": 18446744073709551615, "dropout": -0.0}, "model": [[[[1]]]]})",
      "{\"nothing\": null, \"training\": {\"memory\": \"2GiB\", \"minutes\": 0.5}, 'x': 3,}"};
}

}  // namespace

FuzzTarget fuzz_config() { return {"config", 4096, run, seeds}; }

}  // namespace weft

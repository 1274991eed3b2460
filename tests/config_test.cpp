#include "weft/train/config.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "weft/core/error.h"
#include "weft/train/config_table.h"

using namespace weft;

namespace {

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_error(std::string_view json, const std::vector<std::string>& overrides = {}) {
  return error_of([&] { parse_config(json, "a.json", overrides); });
}

Config with(const std::vector<std::string>& overrides) { return parse_config("{}", "a.json", overrides); }

/// Stands for a member of any type when the members of an aggregate are counted.
struct Any {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class T, class... Given>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Given{}..., Any{}}; })
    return member_count<T, Given..., Any>();
  else
    return sizeof...(Given);
}

std::size_t rows_of(const std::string& section) {
  std::size_t rows = 0;
  for (const ConfigKey& key : config_table().keys) rows += key.section == section ? 1 : 0;
  return rows;
}

}  // namespace

TEST_CASE("every member of the structs has a row in the table") {
  CHECK(config_table().sections.size() == member_count<Config>());
  CHECK(rows_of("data") == member_count<DataConfig>());
  CHECK(rows_of("model") == member_count<ModelConfig>() - 2);  // the vocabularies' sizes come from the data
  CHECK(rows_of("optimizer") == member_count<OptimizerConfig>());
  CHECK(rows_of("schedule") == member_count<ScheduleConfig>());
  CHECK(rows_of("training") == member_count<TrainingConfig>());
  CHECK(rows_of("decoding") == member_count<DecodingConfig>());
}

TEST_CASE("each row reads and writes a member of its own") {
  for (const ConfigKey& key : config_table().keys) {
    Config config;
    const ConfigValue value = key.get(config);
    if (const auto* flag = std::get_if<bool>(&value)) key.set(config, !*flag);
    if (const auto* whole = std::get_if<Index>(&value)) key.set(config, *whole + 1);
    if (const auto* number = std::get_if<double>(&value)) key.set(config, *number + 1);
    if (const auto* text = std::get_if<std::string>(&value)) key.set(config, *text + "x");
    if (std::holds_alternative<std::vector<TextFiles>>(value)) {
      key.set(config, std::vector<TextFiles>{{"a", "b", "", 1, 2}});
    }
    const auto differences = config_differences(Config{}, config);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].rfind(key.path + ": ", 0) == 0);
  }
}

TEST_CASE("an empty object gives the defaults, which pass their own rules") {
  CHECK(config_json(parse_config("{}", "a.json")) == config_json(Config{}));
  CHECK(config_json(parse_config(config_json(Config{}), "a.json")) == config_json(Config{}));
}

TEST_CASE("values, comments and a byte order mark are read") {
  const Config config = parse_config(
      "\xEF\xBB\xBF// sizes\n{\"model\": {\"d_model\": 1e3 /* integral */, \"norm_first\": true},\n"
      "\"optimizer\": {\"learning_rate\": 2, \"epsilon\": 1e-8}, \"data\": {\"train_source\": "
      "\"\xC3\xA9.fr\"}}",
      "a.json");
  CHECK(config.model.d_model == 1000);
  CHECK(config.model.norm_first);
  CHECK(config.optimizer.learning_rate == 2.0);
  CHECK(config.optimizer.epsilon == 1e-8);
  CHECK(config.data.train_source == "\xC3\xA9.fr");
  CHECK(config.model.heads == 4);
}

TEST_CASE("a shown config reads back as itself, byte for byte") {
  const Config config = with({"data.train_source=a \"b\"\\\xC3\xA9", "optimizer.learning_rate=0.1234567890123456789",
                              "optimizer.epsilon=4.9e-324", "model.dropout=-0.0", "training.seed=9007199254740991",
                              "optimizer.clip_norm=1e300", "model.norm_first=true"});
  const std::string shown = config_json(config);
  const Config again = parse_config(shown, "a.json");
  CHECK(config_json(again) == shown);
  CHECK(config_differences(config, again).empty());
  CHECK(again.data.train_source == "a \"b\"\\\xC3\xA9");
  CHECK(again.optimizer.learning_rate == 0.1234567890123456789);
  CHECK(again.optimizer.epsilon == 4.9e-324);
  CHECK(again.training.seed == 9007199254740991);
  CHECK(shown.substr(0, 32) == "{\n  \"data\": {\n    \"task\": \"\",\n  ");
  CHECK(shown.substr(shown.size() - 7) == "\n  }\n}\n");
}

TEST_CASE("an unknown key is an error with a suggestion") {
  CHECK(parse_error("{\n\"optimizer\": {\n\"learing_rate\": 1}}") ==
        "a.json:3: optimizer.learing_rate is not a known key; did you mean optimizer.learning_rate?");
  CHECK(parse_error(R"({"modle": {"heads": 2}})") == "a.json:1: modle is not a known key; did you mean model?");
  CHECK(parse_error(R"({"d_model": 2})") == "a.json:1: d_model is not a known key; did you mean model.d_model?");
  CHECK(parse_error(R"({"training": {"beam": 2}})") ==
        "a.json:1: training.beam is not a known key; did you mean decoding.beam?");
  CHECK(parse_error(R"({"schedule": {"warmup": 2}})") ==
        "a.json:1: schedule.warmup is not a known key; did you mean schedule.warmup_steps?");
  CHECK(parse_error(R"({"schedule": {"lr": 2}})") ==
        "a.json:1: schedule.lr is not a known key; schedule has name, warmup_steps, final_ratio, factor, "
        "patience");
  CHECK(parse_error(R"({"x": {"y": [1, {"model": 3}]}})") ==
        "a.json:1: x is not a known key; the sections are data, model, optimizer, schedule, training, "
        "decoding, bench");
  CHECK(parse_error(R"({"model.heads": 2})") ==
        R"(a.json:1: model.heads must be written inside its section: "model": {"heads": ...})");
  CHECK(parse_error(R"({"a\nb": 2})").find('\n') == std::string::npos);
}

TEST_CASE("a wrong type is an error that says what was found and what is allowed") {
  const auto model = [](const std::string& member) { return parse_error("{\"model\": {" + member + "}}"); };
  CHECK(model(R"("heads": "four")") == R"(a.json:1: model.heads is "four"; must be a whole number, at least 1)");
  CHECK(model(R"("heads": 1.5)") == "a.json:1: model.heads is 1.5; must be a whole number, at least 1");
  CHECK(model(R"("heads": true)") == "a.json:1: model.heads is true; must be a whole number, at least 1");
  CHECK(model(R"("heads": null)") == "a.json:1: model.heads is null; must be a whole number, at least 1");
  CHECK(model(R"("heads": [4, [5], {"heads": 6}])") ==
        "a.json:1: model.heads is an array; must be a whole number, at least 1");
  CHECK(model(R"("dropout": {"heads": 0})") ==
        "a.json:1: model.dropout is an object; must be a number, at least 0 and below 1");
  CHECK(model(R"("norm_first": 1)") == "a.json:1: model.norm_first is 1; must be true or false");
  CHECK(model(R"("norm": 1)") == "a.json:1: model.norm is 1; must be a string");
  CHECK(parse_error(R"({"model": [{"heads": 0}]})") == "a.json:1: model is an array; must be an object: { ... }");
  CHECK(parse_error("[]") == "a.json: is an array; must be an object: { ... }");
  CHECK(parse_error("7") == "a.json: is 7; must be an object: { ... }");
}

TEST_CASE("an impossible value is an error that names the rule") {
  const auto model = [](const std::string& member) { return parse_error("{\"model\": {" + member + "}}"); };
  CHECK(model(R"("heads": 0)") == "a.json:1: model.heads is 0; must be at least 1");
  CHECK(model(R"("heads": -1e300)") == "a.json:1: model.heads is -1e300; must be at least 1");
  CHECK(model(R"("heads": 1e300)") == "a.json:1: model.heads is 1e300; must be at most 1000000000");
  CHECK(model(R"("heads": 18446744073709551615)") ==
        "a.json:1: model.heads is 18446744073709551615; must be at most 1000000000");
  CHECK(model(R"("heads": 99999999999999999999)") ==
        "a.json:1: model.heads is 99999999999999999999; must be at most 1000000000");
  CHECK(model(R"("dropout": 1)") == "a.json:1: model.dropout is 1; must be at least 0 and below 1");
  CHECK(model(R"("dropout": -0.5)") == "a.json:1: model.dropout is -0.5; must be at least 0 and below 1");
  CHECK(parse_error(R"({"optimizer": {"learning_rate": 0}})") ==
        "a.json:1: optimizer.learning_rate is 0; must be above 0");
  CHECK(parse_error(R"({"training": {"threads": 1025}})") ==
        "a.json:1: training.threads is 1025; must be at least 0 and at most 1024");
  CHECK(parse_error(R"({"training": {"seed": 9007199254740993}})") ==
        "a.json:1: training.seed is 9007199254740993; must be at least 0 and at most 9007199254740991");
  CHECK(parse_error(R"({"schedule": {"name": "cosin"}})") ==
        "a.json:1: schedule.name is \"cosin\"; must be one of \"constant\", \"noam\", \"inverse_sqrt\", "
        "\"cosine\", "
        "\"linear\" or \"plateau\"; did you mean \"cosine\"?");
  CHECK(model(R"("activation": "tanh")") ==
        "a.json:1: model.activation is \"tanh\"; must be one of \"relu\", \"gelu\" or \"silu\"");
}

TEST_CASE("duplicate keys and sections are errors") {
  CHECK(parse_error("{\"model\": {\"heads\": 2,\n\"heads\": 2}}") ==
        "a.json:2: model.heads is given twice, first in line 1");
  CHECK(parse_error("{\"model\": {\"heads\": 2},\n\n\"model\": {}}") ==
        "a.json:3: model is given twice, first in line 1");
}

TEST_CASE("values that do not go together are errors") {
  CHECK(parse_error(R"({"model": {"d_model": 130}})") ==
        "a.json: model.d_model (130) must be a multiple of model.heads (4)");
  CHECK(parse_error(R"({"model": {"tied_embeddings": "all"}})") ==
        "a.json: model.tied_embeddings is \"all\"; this needs data.shared_vocabulary to be true");
  CHECK(parse_error(R"({"model": {"tied_embeddings": "all"}, "data": {"shared_vocabulary": true}})") == "no error");
  CHECK(parse_error(R"({"data": {"max_length": 512}})") ==
        "a.json: data.max_length (512) must be below model.max_length (512), to leave room for the end token");
  CHECK(parse_error(R"({"schedule": {"warmup_steps": 0}})") ==
        "a.json: schedule.warmup_steps is 0; must be at least 1 with schedule.name \"inverse_sqrt\"");
  CHECK(parse_error(R"({"schedule": {"warmup_steps": 0, "name": "cosine"}})") == "no error");
  CHECK(parse_error(R"({"decoding": {"min_length": 4, "max_length": 3}})") ==
        "a.json: decoding.min_length (4) must be at most decoding.max_length (3)");
  CHECK(parse_error(R"({"decoding": {"min_length": 4}})") == "no error");
  CHECK(parse_error(R"({"data": {"task": "copy", "test_source": "x"}})") ==
        "a.json: data.task is \"copy\" and data also names files; leave out one of the two");
}

TEST_CASE("a list of texts is read, shown and compared") {
  const Config config = parse_config(R"({"data": {"train": [
      {"source": "a \"b\".fr", "target": "a.en"}, // a comment
      {"tsv": "b.tsv", "target_column": 3}], "test": []}})",
                                     "a.json");
  REQUIRE(config.data.train.size() == 2);
  CHECK(config.data.train[0] == TextFiles{"a \"b\".fr", "a.en", "", 1, 2});
  CHECK(config.data.train[1] == TextFiles{"", "", "b.tsv", 1, 3});
  CHECK(config.data.test.empty());
  const std::string shown = config_json(config);
  CHECK(contains(shown, R"("train": [{"source": "a \"b\".fr", "target": "a.en"}, )"
                        R"({"tsv": "b.tsv", "source_column": 1, "target_column": 3}],)"));
  CHECK(config_differences(config, parse_config(shown, "a.json")).empty());
  const Config other = with({R"(data.train=[{"tsv": "b.tsv"}])"});
  CHECK(other.data.train == std::vector<TextFiles>{{"", "", "b.tsv", 1, 2}});
  CHECK(config_differences(Config{}, other) ==
        std::vector<std::string>{R"(data.train: [] -> [{"tsv": "b.tsv", "source_column": 1, "target_column": 2}])"});
}

TEST_CASE("what is wrong in a list of texts is named by its path") {
  const auto train = [](const std::string& list) { return parse_error("{\"data\": {\"train\": " + list + "}}"); };
  CHECK(train(R"([{"sorce": "a", "target": "b"}])") ==
        "a.json:1: data.train[0].sorce is not a known key; did you mean \"source\"?");
  CHECK(train(R"([{"tsv": "a"}, {"source": "a"}])") == "a.json:1: data.train[1] has no target");
  CHECK(train(R"([{}])") == "a.json:1: data.train[0] names no file; give source and target, or tsv");
  CHECK(train(R"(["a"])") == "a.json:1: data.train[0] is \"a\"; must be an object with source and target, or with tsv");
  CHECK(train(R"([{"tsv": 3}])") == "a.json:1: data.train[0].tsv is 3; must be the name of a file");
  CHECK(train(R"([{"tsv": ""}])") == "a.json:1: data.train[0].tsv is \"\"; must be the name of a file");
  CHECK(train(R"([{"tsv": ["a"]}])") == "a.json:1: data.train[0].tsv is an array; must be the name of a file");
  CHECK(train(R"([{"tsv": "a", "source_column": 0}])") ==
        "a.json:1: data.train[0].source_column is 0; must be a whole number, at least 1 and at most 1000");
  CHECK(train(R"([{"tsv": "a", "source_column": 2}])") ==
        "a.json:1: data.train[0] has column 2 for source and target; choose two columns");
  CHECK(train(R"([{"tsv": "a", "source": "b"}])") ==
        "a.json:1: data.train[0] has tsv and also source or target; leave out one of the two");
  CHECK(train(R"([{"source": "a", "target": "b", "source_column": 2}])") ==
        "a.json:1: data.train[0] has columns, which belong to tsv; leave them out");
  CHECK(train(R"([{"tsv": "a", "tsv": "b"}])") == "a.json:1: data.train[0].tsv is given twice");
  CHECK(train("[{\"tsv\": 1},\n{\"tsv\": 2}]") ==
        "a.json:1: data.train[0].tsv is 1; must be the name of a file\n"
        "a.json:1: data.train[1].tsv is 2; must be the name of a file");
  CHECK(train("\"a\"").rfind("a.json:1: data.train is \"a\"; must be an array such as [{", 0) == 0);
  CHECK(train("{}").rfind("a.json:1: data.train is an object; must be an array such as [{", 0) == 0);
  CHECK(parse_error("{}", {"data.train=a.tsv"}).rfind("--set data.train=a.tsv: data.train is \"a.tsv\"; must be", 0) ==
        0);
  CHECK(parse_error("{}", {R"(data.valid=[{"tsv": "a"}])", "data.valid_source=b"}) ==
        R"(--set data.valid=[{"tsv": "a"}]: data.valid and data.valid_source or data.valid_target name the same text; )"
        "leave out one");
  CHECK(parse_error(R"({"data": {"hold_out_test": 5, "test_source": "a"}})") ==
        "a.json: data.hold_out_test is 5 and data also names a test text; leave out one of the two");
  CHECK(parse_error(R"({"data": {"task": "copy", "hold_out_valid": 5}})") ==
        "a.json: data.hold_out_valid has no use with data.task, whose text is made in all its parts; leave it out");
  CHECK(parse_error(R"({"data": {"seed": 5}})") ==
        "a.json: data.seed is 5, but is used only with data.task, data.hold_out_valid or data.hold_out_test; leave it "
        "out");
  CHECK(parse_error(R"({"data": {"seed": 5, "hold_out_valid": 5}})") == "no error");
}

TEST_CASE("the dropout of embeddings is a probability or follows model.dropout") {
  CHECK(with({"model.embedding_dropout=0"}).model.embedding_dropout == 0);
  CHECK(with({"model.embedding_dropout=-1"}).model.embedding_dropout == -1);
  CHECK(
      parse_error("{}", {"model.embedding_dropout=-0.5"}) ==
      "--set model.embedding_dropout=-0.5: model.embedding_dropout is -0.5; must be at least 0 and below 1, or -1 for "
      "model.dropout");
}

TEST_CASE("a setting that would have no effect is an error") {
  CHECK(parse_error(R"({"optimizer": {"momentum": 0.9}})") ==
        "a.json: optimizer.momentum is 0.9, but is used only with optimizer.name \"sgd\", not \"adam\"; "
        "leave it out");
  CHECK(parse_error(R"({"optimizer": {"momentum": 0.9, "name": "sgd"}})") == "no error");
  CHECK(parse_error(R"({"optimizer": {"momentum": 0}})") == "no error");
  CHECK(parse_error(R"({"data": {"pairs": 9}})") ==
        "a.json: data.pairs is 9, but is used only with data.task \"fr-en\", \"copy\", \"reverse\" or "
        "\"sort\", "
        "not \"\"; leave it out");
}

TEST_CASE("all problems of file and overrides are reported at once") {
  CHECK(parse_error("{\"model\": {\"heads\": 0, \"d_model\": 130},\n \"optimizer\": {\"learing_rate\": 1, "
                    "\"beta1\": 2},\n"
                    " \"data\": {\"max_length\": 1000}}",
                    {"training.steps=none", "training.stepz=1"}) ==
        "a.json:1: model.heads is 0; must be at least 1\n"
        "a.json:2: optimizer.learing_rate is not a known key; did you mean optimizer.learning_rate?\n"
        "a.json:2: optimizer.beta1 is 2; must be at least 0 and below 1\n"
        "--set training.steps=none: training.steps is \"none\"; must be a whole number, at least 1\n"
        "--set training.stepz=1: training.stepz is not a known key; did you mean training.steps?\n"
        "a.json: data.max_length (1000) must be below model.max_length (512), to leave room for the end token");
}

TEST_CASE("overrides win over the file, and the last of them wins") {
  const Config config = parse_config(
      R"({"model": {"d_model": 64}, "data": {"task": "copy"}})", "a.json",
      std::vector<std::string>{"model.d_model=32", "model.d_model=256", "data.task=\"sort\"", "model.norm=12",
                               "model.norm_first=true", "model.positions=a=b", "model.dropout=0"});
  CHECK(config.model.d_model == 256);
  CHECK(config.data.task == "sort");
  CHECK(config.model.norm == "12");
  CHECK(config.model.norm_first);
  CHECK(config.model.positions == "a=b");
  CHECK(config.model.dropout == 0);
  CHECK(parse_config(R"({"data": {"task": "copy"}})", "a.json", std::vector<std::string>{"data.task="})
            .data.task.empty());
}

TEST_CASE("problems of an override name it") {
  CHECK(parse_error("{}", {"model.heads"}) == "--set model.heads: must have the form KEY=VALUE");
  CHECK(parse_error("{}", {"modle.heads=2"}) ==
        "--set modle.heads=2: modle.heads is not a known key; did you mean model.heads?");
  CHECK(parse_error("{}", {"model={}"}) == "--set model={}: model is a section; name one of its keys");
  CHECK(parse_error("{}", {"model.heads=0"}) == "--set model.heads=0: model.heads is 0; must be at least 1");
  CHECK(parse_error("{}", {"model.norm_first=True"}) ==
        "--set model.norm_first=True: model.norm_first is \"True\"; must be true or false");
  CHECK(parse_error("{}", {"optimizer.learning_rate=nan"}) ==
        "--set optimizer.learning_rate=nan: optimizer.learning_rate is \"nan\"; must be a number, above 0");
  CHECK(parse_error("{}", {"model.d_model=130"}) ==
        "--set model.d_model=130: model.d_model (130) must be a multiple of model.heads (4)");
  CHECK(parse_error("{}", {"data.train_source=\xE9"}).find("the value is not UTF-8") != std::string::npos);
}

TEST_CASE("a JSON syntax error names line and column in plain words") {
  CHECK(parse_error("{\n  'model': {}\n}") ==
        "a.json:2:3: strings and keys stand in double quotes, not in single quotes");
  CHECK(parse_error("{\n  model: {}\n}") == "a.json:2:3: a key must stand in double quotes");
  CHECK(parse_error("{\"model\": {\"heads\": 4,\n}}") == "a.json:2:1: a comma stands before the closing }; remove it");
  CHECK(parse_error("{\"model\": {\"heads\": 4\n  \"norm\": \"x\"}}") ==
        "a.json:2:3: a comma or a colon is missing before this");
  CHECK(parse_error("{\"\xC3\xA9\": {\"heads\": 4") ==
        "a.json:1:18: the text ends too early; a value, or the end of an object, string or comment is missing");
  CHECK(parse_error("\xEF\xBB\xBF{]").rfind("a.json:1:2: ", 0) == 0);
  CHECK(parse_error("").rfind("a.json:1:1: the text ends too early", 0) == 0);
  CHECK(parse_error("{} {}").rfind("a.json:1:4: not JSON: ", 0) == 0);
  CHECK(parse_error("{\"model\": {\"heads\": 1e999}}") == "a.json:1:25: not JSON: number overflow parsing '1e999'");
  CHECK(parse_error("{\"model\": {\"heads\": NaN}}").rfind("a.json:1:21: not JSON: invalid literal", 0) == 0);
  CHECK(parse_error("{\"model\": {\"norm\": \"\xE9\"}}").rfind("a.json:1:22: not JSON: ", 0) == 0);
  CHECK(parse_error(std::string_view("{}\0x", 4)) == "a.json:1:3: a zero byte; save the file as UTF-8");
}

TEST_CASE("load_config reads a file and says when it cannot") {
  const TemporaryFolder temporary;
  const auto file = temporary.write("a.json", "{\"model\": {\"heads\": 2}}");
  CHECK(load_config(file, std::vector<std::string>{"model.d_model=64"}).model.heads == 2);
  put(file, "{\"model\": {\"heads\": 0}}");
  CHECK(error_of([&] { load_config(file); }) == file.string() + ":1: model.heads is 0; must be at least 1");
  std::filesystem::remove(file);
  CHECK(error_of([&] { load_config(file); }) == file.string() + ": there is no such file");
  const std::filesystem::path folder = WEFT_SOURCE_DIR;
  CHECK(error_of([&] { load_config(folder); }) == folder.string() + ": is a directory, not a file");
}

TEST_CASE("every config of the project loads") {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WEFT_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    CHECK(error_of([&] { load_config(entry.path(), {}); }) == "no error");
  }
  CHECK(count >= 11);
}

TEST_CASE("training needs a task or all of its files") {
  CHECK(error_of([] { require_training_data(with({})); }) ==
        "nothing to train on; set data.train_source, data.train_target, data.valid_source, "
        "data.valid_target, or "
        "data.task");
  CHECK(error_of([] { require_training_data(with({"data.task=sort"})); }) == "no error");
  const std::vector<std::string> files = {"data.train_source=a", "data.train_target=b", "data.valid_source=c"};
  CHECK(error_of([&] { require_training_data(with(files)); }) ==
        "no validation text; set data.valid_target, or data.hold_out_valid");
  const std::string list = R"(data.train=[{"tsv": "a"}])";
  CHECK(error_of([&] { require_training_data(with({list, "data.hold_out_valid=9"})); }) == "no error");
  CHECK(error_of([&] { require_training_data(with({list})); }) ==
        "no validation text; set data.valid_source, data.valid_target, or data.hold_out_valid");
}

TEST_CASE("differences name the keys with both values") {
  const Config before = with({});
  const Config after = with({"optimizer.learning_rate=0.002", "schedule.name=noam", "model.norm_first=true"});
  CHECK(config_differences(before, before).empty());
  CHECK(config_differences(before, after) == std::vector<std::string>{"model.norm_first: false -> true",
                                                                      "optimizer.learning_rate: 0.001 -> 0.002",
                                                                      "schedule.name: \"inverse_sqrt\" -> \"noam\""});
}

TEST_CASE("docs/config.md is what the table says (make it anew with: weft config docs > docs/config.md)") {
  CHECK(bytes_of(std::filesystem::path(WEFT_SOURCE_DIR) / "docs" / "config.md") == config_docs());
}

#include "weft/train/checkpoint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "throws.h"
#include "tiny_run.h"
#include "weft/core/error.h"
#include "weft/core/safetensors.h"
#include "weft/train/run_files.h"

using namespace weft;
using Json = nlohmann::ordered_json;

namespace {

TrainingState some_state() {
  TrainingState state{.step = 40,
                      .epoch = 3,
                      .next_batch = 2,
                      .loss_sum = 12.345678901234567,
                      .loss_tokens = 77,
                      .validations = {},
                      .best_step = 20,
                      .out_of_time = true,
                      .data_hash = 0xfedcba9876543210u,
                      .file_hashes = {0xfedcba9876543211u, 0},
                      .loss_watch = {1.234567890123456, 1.2, 3},
                      .explosions = 1,
                      .skipped = 7,
                      .skipped_in_row = 2,
                      .good_step = 30,
                      .rollbacks = 4};
  state.validations.push_back({20, 1.5, std::exp(1.5), 0.25, 0.125, 33.3, 44.4});
  state.validations.push_back({40, 800.0, std::numeric_limits<double>::infinity(), 0.1, 0, 0, 0});
  return state;
}

std::unique_ptr<Optimizer> adam_for(TranslationModel& model) {
  auto optimizer = make_optimizer({}, model.parameters().values().size());
  real value = 0;
  for (auto& [name, buffer] : optimizer->state()) {
    for (real& one : buffer) one = value += real(0.25);
  }
  return optimizer;
}

/// Writes a checkpoint with everything in it.
void save_some(const std::filesystem::path& path, const Config& config = tiny_config()) {
  const auto model = tiny_model(config);
  const auto optimizer = adam_for(*model);
  save_checkpoint(path, *model, some_state(), optimizer.get());
}

/// What a checkpoint consists of, to be changed and written anew.
struct Contents {
  explicit Contents(const std::filesystem::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    metadata = file.metadata();
    for (const SafetensorsEntry& entry : file.entries()) {
      std::vector<real>& values = tensors[entry.name].second;
      tensors[entry.name].first = entry.shape;
      values.resize(static_cast<std::size_t>(entry.elements()));
      file.read(entry.name, values);
    }
  }
  void write(const std::filesystem::path& path) const {
    SafetensorsWriter writer;
    for (const auto& [key, value] : metadata) writer.set_metadata(key, value);
    for (const auto& [name, tensor] : tensors) {
      writer.add(name, tensor.first, std::span<const real>(tensor.second));
    }
    writer.write(path);
  }

  SafetensorsMetadata metadata;
  std::map<std::string, std::pair<std::vector<Index>, std::vector<real>>> tensors;
};

/// Loads a checkpoint and gives the error, which must be of the library, name the file, and be one line.
std::string load_error(const std::filesystem::path& path) {
  std::string text;
  try {
    load_checkpoint(path, standard_layers());
    return "no error";
  } catch (const CheckpointError& error) {
    text = error.what();
  } catch (const ConfigError& error) {
    text = error.what();
  } catch (const DataError& error) {
    text = error.what();
  }
  CHECK(contains(text, path.string()));
  CHECK_FALSE(contains(text, "\n"));
  return text;
}

/// The error for a checkpoint that was changed before it was written.
std::string changed_error(const std::function<void(Contents&)>& change) {
  const TemporaryFolder folder;
  save_some(folder / "a.safetensors");
  Contents contents(folder / "a.safetensors");
  change(contents);
  contents.write(folder / "changed.safetensors");
  return load_error(folder / "changed.safetensors");
}

std::string training_error(const std::function<void(Json&)>& change) {
  return changed_error([&](Contents& contents) {
    Json training = Json::parse(contents.metadata.at("weft.training"));
    change(training);
    contents.metadata["weft.training"] = training.dump();
  });
}

}  // namespace

TEST_CASE("a checkpoint from before there was a clock, an average or kept validations reads as one without") {
  const TemporaryFolder folder;
  save_some(folder / "now");
  Contents contents(folder / "now");
  CHECK(load_checkpoint(folder / "now", standard_layers()).state.out_of_time);
  Json training = Json::parse(contents.metadata.at("weft.training"));
  for (const char* key : {"out_of_time", "mean_loss", "least_mean_loss", "loss_above", "explosions", "skipped",
                          "skipped_in_row", "good_step", "rollbacks"}) {
    CHECK(training.erase(key) == 1);
  }
  contents.metadata["weft.training"] = training.dump();
  Json config = Json::parse(contents.metadata.at("weft.config"));
  for (const char* key : {"minutes", "memory", "patience", "keep_best", "keep_last", "ema_decay", "warm_start",
                          "on_divergence", "detect_anomaly"}) {
    CHECK(config["training"].erase(key) == 1);
  }
  CHECK(config["model"].erase("embedding_dropout") == 1);
  contents.metadata["weft.config"] = config.dump();
  contents.write(folder / "old");
  const Checkpoint old = load_checkpoint(folder / "old", standard_layers());
  CHECK_FALSE(old.state.out_of_time);
  CHECK(old.state.skipped == 0);
  CHECK(old.state.good_step == 40);
  CHECK(std::isnan(old.state.loss_watch.mean));
  CHECK(config_differences(old.model->config(), tiny_config()).empty());
  CHECK(contains(training_error([](Json& state) { state["out_of_time"] = "soon"; }), "not those of a checkpoint"));
}

TEST_CASE("save, load, save gives equal bytes, with the optimizer's state too") {
  const TemporaryFolder folder;
  for (const bool with_optimizer : {true, false}) {
    const auto model = tiny_model(tiny_config({"data.lowercase=true", "training.seed=9007199254740991"}));
    const auto optimizer = adam_for(*model);
    save_checkpoint(folder / "first", *model, some_state(), with_optimizer ? optimizer.get() : nullptr);
    const Checkpoint loaded = load_checkpoint(folder / "first", standard_layers());
    const auto fresh = make_optimizer({}, model->parameters().values().size());
    if (with_optimizer) load_optimizer(folder / "first", *fresh);
    save_checkpoint(folder / "second", *loaded.model, loaded.state, with_optimizer ? fresh.get() : nullptr);
    CHECK_FALSE(bytes_of(folder / "first").empty());
    CHECK(bytes_of(folder / "first") == bytes_of(folder / "second"));
  }
}

TEST_CASE("everything comes back: configuration, vocabularies, state, weights, optimizer") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config({"data.tokenizer=whitespace"}));
  const auto optimizer = adam_for(*model);
  const TrainingState state = some_state();
  save_checkpoint(folder / "a", *model, state, optimizer.get());
  const Checkpoint loaded = load_checkpoint(folder / "a", standard_layers());

  CHECK(config_differences(loaded.model->config(), model->config()).empty());
  CHECK(loaded.model->source_vocabulary().tokens() == model->source_vocabulary().tokens());
  CHECK(loaded.model->target_vocabulary().tokens() == model->target_vocabulary().tokens());
  CHECK(loaded.state.step == 40);
  CHECK(loaded.state.epoch == 3);
  CHECK(loaded.state.next_batch == 2);
  CHECK(loaded.state.loss_sum == state.loss_sum);
  CHECK(loaded.state.loss_tokens == 77);
  CHECK(loaded.state.best_step == 20);
  CHECK(loaded.state.data_hash == 0xfedcba9876543210u);
  for (const TrainingState& read : {loaded.state, load_state(folder / "a")}) {
    CHECK(read.step == 40);
    CHECK(read.loss_watch.mean == state.loss_watch.mean);
    CHECK(read.loss_watch.least == 1.2);
    CHECK(read.loss_watch.above == 3);
    CHECK(read.explosions == 1);
    CHECK(read.skipped == 7);
    CHECK(read.skipped_in_row == 2);
    CHECK(read.good_step == 30);
    CHECK(read.rollbacks == 4);
  }
  CHECK(loaded.state.file_hashes == state.file_hashes);
  REQUIRE(loaded.state.validations.size() == 2);
  const ValidationEntry &first = loaded.state.validations[0], &second = loaded.state.validations[1];
  CHECK(first.step == 20);
  CHECK(first.loss == 1.5);
  CHECK(first.perplexity == std::exp(1.5));
  CHECK(first.token_accuracy == 0.25);
  CHECK(first.exact_match == 0.125);
  CHECK(first.bleu == 33.3);
  CHECK(first.chrf == 44.4);
  CHECK(second.loss == 800);
  CHECK(second.perplexity == std::numeric_limits<double>::infinity());  // which JSON has not: the loss says so

  const auto before = model->parameters().values(), after = loaded.model->parameters().values();
  CHECK(std::ranges::equal(before.values(), after.values()));
  const auto fresh = make_optimizer({}, before.size());
  load_optimizer(folder / "a", *fresh);
  for (std::size_t i = 0; i < 2; ++i) CHECK(std::ranges::equal(fresh->state()[i].second, optimizer->state()[i].second));
}

TEST_CASE("the score of the best checkpoint is the chosen metric at its step") {
  const TrainingState state = some_state();
  CHECK(best_score(state, "loss") == 1.5);
  CHECK(best_score(state, "bleu") == 33.3);
  CHECK(best_score(state, "chrf") == 44.4);
  CHECK(best_score(state, "exact_match") == 0.125);
  CHECK(best_score(state, "token_accuracy") == 0.25);
  CHECK(std::isnan(best_score(TrainingState{}, "loss")));
}

TEST_CASE("weights are readable under their dotted names by any reader of the format") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config());
  const auto optimizer = adam_for(*model);
  save_checkpoint(folder / "a", *model, some_state(), optimizer.get());
  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  CHECK(file.shape("source_embedding.weight") == std::vector<Index>{9, 16});
  CHECK(file.shape("encoder.layers.0.feed_forward.inner.weight") == std::vector<Index>{32, 16});
  CHECK(file.shape("decoder.layers.0.cross_attention.output.weight") == std::vector<Index>{16, 16});
  CHECK(file.shape("output.bias") == std::vector<Index>{9});
  CHECK(file.find("optimizer.first_moment") != nullptr);
  for (const ParameterEntry& entry : model->parameters().entries()) {
    std::vector<real> values(static_cast<std::size_t>(entry.shape.size()));
    file.read(entry.name, values);
    const Tensor expected = model->parameters().value(entry);
    CHECK(std::ranges::equal(values, expected.values()));
  }
  CHECK(file.metadata().at("weft.format") == "1");
  CHECK(file.metadata().at("weft.step") == "40");
  CHECK(file.metadata().at("weft.seed") == "1");
  CHECK(file.metadata().at("weft.best_score") == "1.5");
}

TEST_CASE("a file that is missing, a folder, cut, altered or foreign is refused in one line") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  CHECK(contains(load_error(path), "No such file"));
  CHECK(contains(load_error(folder.path()), "directory"));
  put(path, "");
  CHECK(contains(load_error(path), "not a safetensors file"));
  put(path, "Once upon a time there was a file that was no model.\n");
  CHECK(contains(load_error(path), "not a safetensors file"));

  save_some(path);
  const std::string good = bytes_of(path);
  for (std::size_t k = 0; k < 60; ++k) {
    const std::size_t at = good.size() * k / 60;
    put(path, good.substr(0, at));
    CHECK(load_error(path) != "no error");
    std::string altered = good;
    altered[at] = static_cast<char>(altered[at] ^ 0x20);
    put(path, altered);
    CHECK(load_error(path) != "no error");
  }
  put(path, good + "x");
  CHECK(load_error(path) != "no error");
  put(path, good);
  CHECK_NOTHROW(load_checkpoint(path, standard_layers()));
}

TEST_CASE("files of a run that changed are named: text, validation text and subword models") {
  const TemporaryFolder folder;
  Config config = tiny_config();
  DataConfig& data = config.data;
  data.train = {{folder.write("train.src", "a\n").string(), folder.write("train.trg", "b\n").string(), "", 1, 2},
                {"", "", folder.write("more.tsv", "a\tb\n").string(), 1, 2}};
  data.valid_source = folder.write("valid.src", "c\n").string();
  data.valid_target = folder.write("valid.trg", "d\n").string();
  data.target_subword_model = folder.write("target.model", "e").string();
  const std::vector<std::string> names = run_files(data);
  CHECK(names.size() == 6);
  const std::vector<std::uint64_t> before = run_file_hashes(data);
  REQUIRE(before.size() == names.size());
  for (const std::uint64_t hash : before) CHECK(hash != 0);
  CHECK_NOTHROW(require_same_files(data, before, "run"));
  for (const std::string& name : names) {
    const std::string bytes = bytes_of(name);
    put(name, bytes + "x");
    CHECK_THROWS_SAYING(require_same_files(data, before, "run"),
                        "run: changed since this run began: " + name + "; restore what was there, or use --fresh",
                        DataError);
    CHECK_THROWS_SAYING(require_files_unchanged(data, before), name + ": changed while it was read", DataError);
    CHECK_NOTHROW(require_same_files(data, {}, "run"));  // of an older checkpoint
    put(name, bytes);
  }
  std::filesystem::remove(data.target_subword_model);  // the checkpoint has it
  CHECK_NOTHROW(require_same_files(data, before, "run"));
}

TEST_CASE("a safetensors file that is no checkpoint of Weft is refused") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  SafetensorsWriter writer;
  const std::vector<float> values{1, 2, 3};
  writer.add("weight", {3}, std::span<const float>(values));
  writer.write(path);  // with a checksum
  CHECK(contains(load_error(path), "not a checkpoint of Weft: it has no \"weft.format\""));
  put(path, std::string("\x02\0\0\0\0\0\0\0{}", 10));  // of another program
  CHECK(contains(load_error(path), "not from Weft"));
}

TEST_CASE("missing metadata and other formats are named") {
  for (const char* key :
       {"weft.format", "weft.config", "weft.source_vocabulary", "weft.target_vocabulary", "weft.training"}) {
    CHECK(contains(changed_error([&](Contents& c) { c.metadata.erase(key); }), std::string("it has no \"") + key));
  }
  CHECK(contains(changed_error([](Contents& c) { c.metadata["weft.format"] = "two"; }), "format two"));
  CHECK(contains(changed_error([](Contents& c) { c.metadata["weft.format"] = "\x1B[31m"; }), "format \\x1B[31m of"));
}

TEST_CASE("errors of a checkpoint stay short, however long what is wrong in it") {
  const std::string word = '"' + std::string(100'000, 'x') + '"';
  for (const char* key : {"weft.format", "weft.config", "weft.source_vocabulary", "weft.training"}) {
    for (const std::string& text : {word, word.substr(1), R"(["<unk>","<s>","</s>",)" + word + ',' + word + ']'}) {
      const std::string error = changed_error([&](Contents& c) { c.metadata[key] = text; });
      CAPTURE(key);
      CAPTURE(error.substr(0, 1000));
      CHECK(error.size() < 1000);
    }
  }
}

TEST_CASE("numbers that are not finite are refused with their place by all that use them, and can be looked at") {
  for (const real bad : {std::numeric_limits<real>::quiet_NaN(), -std::numeric_limits<real>::infinity()}) {
    const TemporaryFolder folder;
    save_some(folder / "good");
    Contents contents(folder / "good");
    contents.tensors.at("output.weight").second[2 * 16 + 3] = bad;
    contents.tensors.at("optimizer.second_moment").second[7] = bad;
    contents.write(folder / "bad");
    const std::string error = load_error(folder / "bad");
    CHECK(contains(error, std::isnan(bad) ? "output.weight[2, 3] is nan" : "output.weight[2, 3] is -inf"));
    CHECK_NOTHROW(load_checkpoint(folder / "bad", standard_layers(), Numbers::kAny));
    const auto model = tiny_model(tiny_config());
    CHECK_THROWS_SAYING(load_parameters(folder / "bad", *model), "output.weight[2, 3]", CheckpointError);
    const auto adam = adam_for(*model);
    CHECK_THROWS_SAYING(load_optimizer(folder / "bad", *adam), "optimizer.second_moment[7] is", CheckpointError);
    CHECK_NOTHROW(load_optimizer(folder / "good", *adam));
  }
}

TEST_CASE("a configuration or vocabulary that makes no sense is named") {
  const auto config_error = [](const std::string& json) {
    return changed_error([&](Contents& c) { c.metadata["weft.config"] = json; });
  };
  CHECK(contains(config_error("{"), "weft.config:1:"));
  CHECK(contains(config_error("[]"), "weft.config"));
  CHECK(contains(config_error(R"({"model": {"heads": "two"}})"), "model.heads"));
  CHECK(contains(config_error(R"({"model": {"d_modle": 16}})"), "did you mean model.d_model?"));
  CHECK(contains(config_error(R"({"model": {"d_model": -16}})"), "model.d_model"));
  CHECK(contains(config_error(R"({"model": {"d_model": 1e300}})"), "model.d_model"));
  CHECK(contains(config_error("{}"), "which its configuration asks for"));  // a model of other shapes

  const auto vocabulary_error = [](const std::string& json) {
    return changed_error([&](Contents& c) { c.metadata["weft.source_vocabulary"] = json; });
  };
  CHECK(contains(vocabulary_error("nonsense"), "not those of a checkpoint"));
  CHECK(contains(vocabulary_error("{}"), "not those of a checkpoint"));
  CHECK(contains(vocabulary_error("[1, 2]"), "not those of a checkpoint"));
  CHECK(contains(vocabulary_error("[]"), "weft.source_vocabulary:1: nothing where <unk> must be"));
  CHECK(contains(vocabulary_error(R"(["<unk>", "<s>", "</s>", "a", "a"])"), "weft.source_vocabulary:5"));
  CHECK(contains(vocabulary_error(R"(["<unk>", "<s>", "</s>", "a"])"), "source_embedding.weight"));
}

TEST_CASE("a model of an absurd size is an error like any other") {
  const TemporaryFolder folder;
  save_some(folder / "a");
  Contents contents(folder / "a");
  for (const std::string model : {R"("d_model": 1000000000, "heads": 1)", R"("d_feed_forward": 1000000000)",
                                  R"("max_length": 1000000000)", R"("encoder_layers": 1000000000)"}) {
    CAPTURE(model);
    contents.metadata["weft.config"] = "{\"model\": {" + model + "}}";
    contents.write(folder / "changed");
    CHECK_THROWS_AS(load_checkpoint(folder / "changed", standard_layers()), Error);
  }
}

TEST_CASE("a state of training that makes no sense is named") {
  CHECK(training_error([](Json&) {}) == "no error");
  for (const char* key : {"step", "epoch", "next_batch", "loss_tokens", "best_step", "data_hash", "loss_above",
                          "explosions", "skipped", "skipped_in_row", "good_step", "rollbacks"}) {
    CAPTURE(key);
    for (const Json& value :
         {Json(-1), Json(1.5), Json("4"), Json(true), Json(nullptr), Json::array(), Json::object(), Json(1e300)}) {
      CHECK(contains(training_error([&](Json& t) { t[key] = value; }), std::string(key) + " is "));
    }
    CHECK(contains(training_error([&](Json& t) { t.erase(key); }), key));
    if (std::string(key) != "data_hash") {
      CHECK(contains(training_error([&](Json& t) { t[key] = 18446744073709551615u; }), std::string(key) + " is "));
    }
  }
  CHECK(contains(training_error([](Json& t) { t["best_step"] = 41; }), "best_step is 41"));
  CHECK(contains(training_error([](Json& t) { t["loss_sum"] = "much"; }), "not those of a checkpoint"));
  CHECK(contains(training_error([](Json& t) { t["validations"] = 3; }), "not those of a checkpoint"));
  CHECK(contains(training_error([](Json& t) { t["validations"] = {{"step", 1}}; }), "not those of a checkpoint"));
  CHECK(contains(training_error([](Json& t) { t["validations"][0]["step"] = -3; }), "step is -3"));
  CHECK(contains(training_error([](Json& t) { t["validations"][0]["step"] = 41; }), "step is 41"));
  CHECK(contains(training_error([](Json& t) { t["validations"][0]["bleu"] = "good"; }), "not those of a checkpoint"));
  CHECK(contains(training_error([](Json& t) { t["validations"][0].erase("loss"); }), "not those of a checkpoint"));
  for (const Json& value :
       {Json::array({-1}), Json::array({"1"}), Json::array({nullptr}), Json::object({{"a", 1.5}})}) {
    CHECK(contains(training_error([&](Json& t) { t["file_hashes"] = value; }), "file_hashes is "));
  }
  CHECK(training_error([](Json& t) { t.erase("file_hashes"); }) == "no error");             // of an earlier version
  CHECK(training_error([](Json& t) { t["validations"][0].erase("chrf"); }) == "no error");  // of an earlier version
  CHECK(contains(changed_error([](Contents& c) { c.metadata["weft.training"] = "[1]"; }), "not those of a checkpoint"));
  CHECK(contains(changed_error([](Contents& c) { c.metadata["weft.training"] = "{\"step\":\n\x01"; }),
                 "not those of a checkpoint"));
}

TEST_CASE("tensors that are missing or of another shape are named") {
  CHECK(contains(changed_error([](Contents& c) { c.tensors.erase("output.bias"); }),
                 "no tensor output.bias of shape [9]"));
  CHECK(contains(changed_error([](Contents& c) { c.tensors["output.bias"].first = {3, 3}; }), "output.bias"));
  CHECK(contains(changed_error([](Contents& c) { c.tensors["output.bias"] = {{1}, {real(1)}}; }), "output.bias"));
}

TEST_CASE("a layer that the program does not know is named with those that it knows") {
  const auto message = [](const std::string& slot) {
    return changed_error([&](Contents& c) {
      Json config = Json::parse(c.metadata.at("weft.config"));
      config["model"][slot] = "gated";
      c.metadata["weft.config"] = config.dump();
    });
  };
  CHECK(contains(message("feed_forward"), "model.feed_forward: \"gated\""));
  CHECK(contains(message("feed_forward"), "it knows default"));
  CHECK(contains(message("positions"), "it knows learned, sinusoidal"));
}

TEST_CASE("an optimizer takes only the state of its own kind") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config());
  save_checkpoint(folder / "bare", *model, some_state(), nullptr);
  const Index size = model->parameters().values().size();
  const auto adam = make_optimizer({}, size);
  CHECK_THROWS_SAYING(load_optimizer(folder / "bare", *adam),
                      "no tensor optimizer.first_moment; training can go on from a last.safetensors only",
                      CheckpointError);
  save_some(folder / "adam");
  const auto sgd = make_optimizer({.name = "sgd", .momentum = 0.9}, size);
  CHECK_THROWS_SAYING(load_optimizer(folder / "adam", *sgd), "optimizer.momentum", CheckpointError);
  const auto larger = make_optimizer({}, size + 1);
  CHECK_THROWS_AS(load_optimizer(folder / "adam", *larger), CheckpointError);
}

TEST_CASE("vocabularies too long for the header of a checkpoint are refused before training") {
  const auto with_word = [](std::size_t bytes) {
    return Vocabulary::from_tokens({"<unk>", "<s>", "</s>", std::string(bytes, 'a')});
  };
  const Vocabulary small = with_word(10), large = with_word(46'000'000);
  CHECK_NOTHROW(require_room_in_header(small, large));
  CHECK_THROWS_SAYING(require_room_in_header(large, large), "lower data.max_vocabulary", ConfigError);
}

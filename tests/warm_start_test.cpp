// Beginning with the parameters of another model.
#include "weft/train/warm_start.h"

#include "cli.h"
#include "throws.h"
#include "weft/core/error.h"

using namespace weft;
using namespace weft::cli;

namespace {

Tensor parameter(TranslationModel& model, const std::string& name) {
  for (const ParameterEntry& entry : model.parameters().entries()) {
    if (entry.name == name) return model.parameters().value(entry);
  }
  FAIL("no parameter " << name);
  return {};
}

std::vector<real> numbers(const Tensor& tensor) { return {tensor.values().begin(), tensor.values().end()}; }

/// Saves the model with all parameters off their beginning.
std::unique_ptr<TranslationModel> saved_model(const std::filesystem::path& path,
                                              std::unique_ptr<TranslationModel> model) {
  Random random(3);
  for (const ParameterEntry& entry : model->parameters().entries()) {
    Tensor part = model->parameters().value(entry);
    for (real& value : part.values()) value += static_cast<real>(1 + random.uniform());
  }
  save_checkpoint(path, *model, {}, nullptr);
  return model;
}
std::unique_ptr<TranslationModel> saved(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return saved_model(path, tiny_model(tiny_config(overrides)));
}

}  // namespace

TEST_CASE("a model of the same shape and vocabulary takes all parameters") {
  const TemporaryFolder folder;
  const auto other = saved(folder / "a", {});
  const auto model = tiny_model(tiny_config({"training.seed=8"}));
  const auto report = warm_start(*model, folder / "a", standard_layers());
  CHECK(numbers(model->parameters().values()) == numbers(other->parameters().values()));
  const std::string count = std::to_string(model->parameters().entries().size());
  REQUIRE(report.size() == 1);
  CHECK(report[0] ==
        "warm start       " + count + " of " + count + " parameters as in " + (folder / "a").string() + ", 0 in part");
}

TEST_CASE("rows of another vocabulary are matched by their tokens") {
  const TemporaryFolder folder;
  const auto model = tiny_model(tiny_config());
  std::vector<std::string> tokens = model->source_vocabulary().tokens();
  REQUIRE(tokens.size() == 9);
  std::reverse(tokens.begin() + 3, tokens.end());  // no letter stays where it is
  tokens.back() = "zz";
  const Vocabulary words = Vocabulary::from_tokens(tokens);
  const auto small =
      saved_model(folder / "small", std::make_unique<TranslationModel>(tiny_config(), words, words, standard_layers()));
  const auto fresh = tiny_model(tiny_config());
  const auto report = warm_start(*model, folder / "small", standard_layers());
  REQUIRE(report.size() == 5);
  CHECK(contains(report[0], ", 4 in part"));
  for (const std::string name :
       {"source_embedding.weight", "target_embedding.weight", "output.weight", "output.bias"}) {
    CAPTURE(name);
    CHECK(std::count(report.begin(), report.end(),
                     "  " + name + ": 8 of 9 rows, those of tokens that the checkpoint knows") == 1);
    const Vocabulary& ours = name.starts_with("source") ? model->source_vocabulary() : model->target_vocabulary();
    const Vocabulary& theirs = name.starts_with("source") ? small->source_vocabulary() : small->target_vocabulary();
    const Tensor now = parameter(*model, name), before = parameter(*fresh, name), from = parameter(*small, name);
    const Index width = now.size() / ours.size();
    for (Index row = 0; row < ours.size(); ++row) {
      const auto& all = theirs.tokens();
      const auto found = std::find(all.begin(), all.end(), ours.token(static_cast<TokenId>(row)));
      const real* expected =
          found == all.end() ? before.data() + row * width : from.data() + (found - all.begin()) * width;
      CHECK(std::equal(expected, expected + width, now.data() + row * width));
    }
  }
  // A larger vocabulary has all that a smaller one asks for.
  saved(folder / "large", {});
  const auto smaller = tiny_model(tiny_config({"data.max_vocabulary=6"}));
  CHECK(warm_start(*smaller, folder / "large", standard_layers()).size() == 1);
}

TEST_CASE(
    "what the checkpoint lacks or has in another shape stays as it "
    "began, and is named") {
  const TemporaryFolder folder;
  const auto other = saved(folder / "a", {});
  const std::vector<std::string> deeper{"model.encoder_layers=2", "model.d_feed_forward=48"};
  const auto model = tiny_model(tiny_config(deeper)), fresh = tiny_model(tiny_config(deeper));
  const auto report = warm_start(*model, folder / "a", standard_layers());
  const std::string inner = "encoder.layers.0.feed_forward.inner.weight",
                    query = "encoder.layers.1.self_attention.query.weight";
  CHECK(std::count(report.begin(), report.end(), "  " + query + ": not taken, the checkpoint has none") == 1);
  CHECK(std::count(report.begin(), report.end(),
                   "  " + inner +
                       ": not taken, its shape is [48, 16] and the "
                       "checkpoint's [32, 16]") == 1);
  CHECK(numbers(parameter(*model, inner)) == numbers(parameter(*fresh, inner)));
  CHECK(numbers(parameter(*model, query)) == numbers(parameter(*fresh, query)));
  const std::string taken = "decoder.layers.0.cross_attention.key.weight";
  CHECK(numbers(parameter(*model, taken)) == numbers(parameter(*other, taken)));

  saved(folder / "deep", {"model.encoder_layers=2"});
  const auto shallow = tiny_model(tiny_config());
  const auto left = warm_start(*shallow, folder / "deep", standard_layers());
  REQUIRE(left.size() == 2);
  CHECK(contains(left[1], "16 parameters of the checkpoint have no place in this model"));
  CHECK_THROWS_SAYING(warm_start(*shallow, folder / "none", standard_layers()), "none", CheckpointError);
}

TEST_CASE("weft train --from begins with a checkpoint, and goes on without it") {
  const std::string best = trained();
  const Words words{"train",  "tiny.json",
                    "--run",  "warm",
                    "--from", "begin.safetensors",
                    "--set",  "training.steps=20",
                    "--set",  "schedule.warmup_steps=1000"};
  check_refused(words, {"begin.safetensors"});
  std::filesystem::copy_file(best, "begin.safetensors");
  const auto outcome = run_weft(words);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "parameters as in begin.safetensors, 0 in part\n"));
  const Checkpoint warm = load_checkpoint("warm/last.safetensors", standard_layers());
  CHECK(warm.state.step == 20);
  REQUIRE(warm.state.validations.size() == 1);
  // With so low a rate only the beginning can be the reason that it is good.
  CHECK(warm.state.validations[0].loss < 0.5);
  std::filesystem::remove("begin.safetensors");
  const auto again = run_weft(words);
  CHECK(again.code == 0);
  CHECK(contains(again.out, "is trained to its end"));
}

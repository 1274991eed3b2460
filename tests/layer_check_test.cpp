// The check of layers: all layers that come with Weft pass it, and each of some layers that are wrong in one way fails
// just the check that is there for it.
#include "weft/nn/layer_check.h"

#include <stdlib.h>  // setenv
#include <unistd.h>  // getpid

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/core/gemm.h"
#include "weft/core/temporary.h"
#include "weft/core/threads.h"
#include "weft/nn/layer_checks.h"
#include "wrong_layers.h"
#include "wrong_layers_backward.h"
#include "wrong_layers_check.h"
#include "wrong_layers_decoding.h"

using namespace weft;

namespace {

/// Sets a variable of the environment, and at the end what it was.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("every layer that comes with Weft passes every check") {
  const Registry registry = standard_layers();
  Index layers = 0;
  for (const std::string& slot : Registry::slots()) {
    for (const std::string& name : registry.names(slot)) {
      for (const bool other : {false, true}) {
        LayerOptions options = small_layer_options();
        if (other) options.norm_first = true, options.activation = Activation::kGelu, options.heads = 1;
        const LayerCheck check = check_layer(registry, slot, name, options);
        CHECK(check.rows.size() == (slot == "encoder_layer" ? 8 : 10));
        for (const LayerCheckRow& row : check.rows) {
          CHECK_MESSAGE(row.passed, slot, " ", name, " ", row.check, ": ", row.result, "; ", row.place);
        }
        ++layers;
      }
    }
  }
  CHECK(layers == 16);
}

TEST_CASE("a difference that falls on a kink of relu is no mistake") {
  LayerOptions options = small_layer_options();
  options.d_model = 6, options.heads = 1, options.d_feed_forward = 49;
  CHECK(failed(check_layer(standard_layers(), "feed_forward", "default", options)) == Names{});
}

TEST_CASE("many kinks of relu, and norms of few numbers, are no mistake") {
  LayerOptions options = small_layer_options();
  options.d_model = 6, options.heads = 3, options.d_feed_forward = 512, options.max_length = 300;
  options.dropout = options.attention_dropout = 0, options.activation_dropout = real(0.5), options.norm_first = true;
  CHECK(failed(check_layer(standard_layers(), "encoder_layer", "default", options)) == Names{});
  options = small_layer_options();
  options.d_model = 2, options.heads = 1, options.d_feed_forward = 128, options.norm_first = true;
  CHECK(failed(check_layer(standard_layers(), "encoder_layer", "default", options)) == Names{});
  options = small_layer_options();
  options.d_model = 3, options.heads = 1, options.d_feed_forward = 1024, options.max_length = 3;
  options.dropout = real(0.3), options.attention_dropout = options.activation_dropout = 0;
  CHECK(failed(check_layer(standard_layers(), "decoder_layer", "default", options)) == Names{});
}

TEST_CASE("large sizes are checked in parts") {
  Registry registry = standard_layers();
  registry.add<WrongBackward>("feed_forward", "wrong");
  LayerOptions options = small_layer_options();
  options.d_model = 48, options.heads = 3, options.d_feed_forward = 200;
  CHECK(failed(check_layer(registry, "feed_forward", "default", options)) == Names{});
  options.feed_forward = "wrong";  // within a larger layer, beside what is right
  CHECK(failed(check_layer(registry, "encoder_layer", "default", options)) == Names{"gradients"});
}

TEST_CASE("a layer that is wrong in one way fails the check for it, and no other") {
  CHECK(failed(check_of<CountsSentences>("feed_forward")) == Names{"batch composition"});
  CHECK(failed(check_of<SeesNeighbours>("cross_attention")) == Names{"batch composition", "tape"});  // and shows it
  CHECK(failed(check_of<CountsTrained>("feed_forward")) == Names{"batch composition"});
  CHECK(failed(check_of<SeesBefore>("norm")) == Names{"batch composition"});
  CHECK(failed(check_of<LargeBatches>("feed_forward")) == Names{"batch composition"});
  CHECK(failed(check_of<WrongBackwardWhere<late_in_batch>>("feed_forward")) == Names{"batch composition"});
  CHECK(failed(check_of<LooksAhead>("norm")) == Names{"causality"});
  CHECK(failed(check_of<LooksAheadTrained>("norm")) == Names{"causality"});
  CHECK(failed(check_of<LooksAheadDropping>("norm")) == Names{"causality"});
  CHECK(failed(check_of<CrossLooksAhead>("cross_attention")) == Names{"causality"});
  CHECK(failed(check_of<LooksFarAhead>("feed_forward")) == Names{"causality"});
  CHECK(failed(check_of<ForgetsPast>("positions")) == Names{"decoding"});
  CHECK(failed(check_of<LooksFarBack>("feed_forward")) == Names{"decoding"});
  CHECK(failed(check_of<ManyHypotheses>("feed_forward")) == Names{"decoding"});
  CHECK(failed(check_of<CountsSteps>("positions")) == Names{"decoding", "threads"});  // in any second text
  CHECK(failed(check_of<KeepsMemory>("cross_attention")) == Names{"decoding"});
  CHECK(failed(check_of<KeepsByAddress>("cross_attention")) == Names{"decoding"});
  CHECK(contains(place_of(check_of<KeepsByAddress>("cross_attention")), "second text, position 1"));
  CHECK(failed(check_of<FoldsOnce>("feed_forward")) == Names{"decoding"});
  CHECK(contains(place_of(check_of<FoldsOnce>("feed_forward")), "after the parameters changed"));
  CHECK(failed(check_of<KeepsForAll>("cross_attention")) == Names{"decoding"});
#ifdef WEFT_VECTOR_GEMM  // OpenBLAS may round a row in another way among other rows
  CHECK(failed(check_of<DecodesBy<count_rows>>("feed_forward")) == Names{"batch composition"});
#endif
  CHECK(failed(check_of<DecodesBy<count_threads>>("feed_forward")) == Names{"threads"});
  CHECK(failed(check_of<ThreadSum>("feed_forward")) == Names{"threads"});
  CHECK(failed(check_of<OtherWithoutTape>("norm")) == Names{"tape"});
  CHECK(failed(check_of<ShowsOneSentence>("cross_attention")) == Names{"tape"});
  CHECK(failed(check_of<HiddenFactor>("norm")) == Names{"save and load"});
  CHECK(failed(check_of<Keeps<all_passes>>("feed_forward")) == Names{"memory"});
  CHECK(failed(check_of<Keeps<untaped_passes>>("feed_forward")) == Names{"memory"});
  CHECK(failed(check_of<Keeps<decoding_passes>>("feed_forward")) == Names{"memory"});
  CHECK(failed(check_of<RootOfSquare>("feed_forward")) == Names{"odd input"});
  CHECK(failed(check_of<Exponential>("feed_forward")) == Names{"odd input"});
  CHECK(contains(place_of(check_of<Exponential>("feed_forward")), "10,000: the result"));
  CHECK(contains(place_of(check_of<RootOfSquare>("feed_forward")), "zeros: a gradient"));
  const LayerCheck wrong = check_of<WrongBackward>("feed_forward");
  CHECK(failed(wrong) == Names{"gradients"});
  CHECK(contains(place_of(wrong), "in the encoder: of input 0, layer.inner.weight, layer.inner.bias"));
  CHECK(contains(place_of(wrong), "backward"));
  const LayerCheck far = check_of<WrongBackwardWhere<after_64_rows>>("feed_forward");
  CHECK(failed(far) == Names{"gradients"});
  CHECK(contains(place_of(far), "with a sentence of 70 rows, of input 0; worst of input 0, elements"));
  CHECK(failed(check_of<WrongBackwardWhere<in_single_row>>("feed_forward")) == Names{"gradients"});
  CHECK(failed(check_of<WrongBackwardWhere<in_full_tiles>>("feed_forward")) == Names{"gradients"});
  CHECK(failed(check_of<OverwritesInput>("feed_forward")) == Names{"gradients"});
  CHECK(failed(check_of<KeepsSaved<false>>("feed_forward")) == Names{"gradients"});
  CHECK(failed(check_of<WrongWithoutDropout<40>>("feed_forward")) == Names{"gradients"});
  const LayerCheck drops_nothing = check_of<WrongWithoutDropout<0>>("feed_forward");
  CHECK(failed(drops_nothing) == Names{"gradients"});
  CHECK(contains(place_of(drops_nothing), "without dropout, of input 0"));
  const LayerCheck overwrites = check_of<OverwritesParameter>("feed_forward");
  CHECK(failed(overwrites) == Names{"gradients"});
  CHECK(contains(place_of(overwrites), "of the parameters, where there is a gradient already"));
}

TEST_CASE("no sentence is longer than a layer's max_length, and none has more than 2,048 rows") {
  const Registry registry = standard_layers();
  for (const char* name : {"learned", "sinusoidal"}) {
    for (const Index most : {1, 2, 3, 5}) {
      LayerOptions options = small_layer_options();
      options.max_length = most;
      CHECK_MESSAGE(failed(check_layer(registry, "positions", name, options)) == Names{}, name, " ", most);
    }
  }
  struct TellsLongest : PlainLayer {
    using PlainLayer::PlainLayer;
    Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
      for (Index s = 0; s < rows.sequences(); ++s) longest() = std::max(longest(), rows.length(s));
      return x;
    }
    static Index& longest() {
      static Index rows = 0;
      return rows;
    }
  };
  Registry mine = standard_layers();
  mine.add<TellsLongest>("norm", "mine");
  LayerOptions options = small_layer_options();
  options.max_length = 1'000'000;
  CHECK(failed(check_layer(mine, "norm", "mine", options)) == Names{});
  CHECK(TellsLongest::longest() == 2048);
}

TEST_CASE("memory that is out and files that cannot be written are no fault of a layer") {
  CHECK_THROWS_AS(check_of<Throws<std::bad_alloc>>("norm"), std::bad_alloc);
  CHECK_THROWS_AS(check_of<Throws<std::system_error>>("norm"), std::system_error);
  std::string text;
  try {
    check_of<TakesAll>("norm");
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(contains(text, "out of memory"));
  const Variable nowhere("TMPDIR", "/nonexistent");
  CHECK_THROWS_AS(check_layer(standard_layers(), "norm", "layer_norm"), CheckError);
}

TEST_CASE("save and load leaves alone what is in the temporary folder") {
  const TemporaryFolder folder;
  const auto victim = folder.write("victim", "mine");
  const auto links = folder / "temporary";
  std::filesystem::create_directory(links);
  std::filesystem::create_symlink(victim, links / ("weft_check_layer_" + std::to_string(getpid()) + ".safetensors"));
  const Variable there("TMPDIR", links.string());
  CHECK(failed(check_layer(standard_layers(), "norm", "layer_norm")) == Names{});
  CHECK(bytes_of(victim) == "mine");
  CHECK(std::distance(std::filesystem::directory_iterator(links), {}) == 1);
}

TEST_CASE("a signal during save and load leaves nothing in the temporary folder") {
  const TemporaryFolder folder;
  const Variable there("TMPDIR", (folder / ".").string());
  const FileCalls before = file_calls();
  file_calls().rename = [](const char* from, const char* to) {  // the handler has its turn once the file is whole
    const int result = ::rename(from, to);
    remove_temporaries();
    return result;
  };
  CHECK_THROWS_AS(check_layer(standard_layers(), "norm", "layer_norm"), CheckError);
  file_calls() = before;
  CHECK(std::filesystem::is_empty(folder / "."));
}

TEST_CASE("chance of a layer's own is found") {
  const Names own = failed(check_of<OwnChance>("feed_forward")), always = failed(check_of<AlwaysDrops>("feed_forward"));
  CHECK(std::count(own.begin(), own.end(), "randomness") == 1);
  CHECK(std::count(always.begin(), always.end(), "randomness") == 1);
}

TEST_CASE("a layer that writes into what it is given fails wherever it does") {
  CHECK(failed(check_of<InPlace>("feed_forward")) == Names{"batch composition", "decoding", "threads", "memory"});
  CHECK(contains(place_of(check_of<InPlace>("feed_forward")), "x was changed in place"));
  CHECK(contains(place_of(check_of<MemoryInPlace>("cross_attention")), "memory was changed in place"));
  CHECK(failed(check_of<FoldsInPlace>("feed_forward")) == Names{"batch composition", "decoding", "threads"});
  CHECK(contains(place_of(check_of<FoldsInPlace>("feed_forward")), "a parameter was changed in place"));
  const LayerCheck masks = check_of<MasksGradientInPlace>("feed_forward");
  CHECK(failed(masks).size() == masks.rows.size() - 2);  // decoding and causality have no way back
  CHECK(contains(place_of(masks), "the gradient of the result was changed in place"));
}

TEST_CASE("a layer may leave out a part of itself by the chance of the step") {
  CHECK(failed(check_of<LeavesOut>("feed_forward")) == Names{});
}

TEST_CASE("a layer may keep things by its name, and what it made of its parameters until the next training pass") {
  CHECK(failed(check_of<KeepsSaved<true>>("feed_forward")) == Names{});
  CHECK(failed(check_of<FoldsBetweenUpdates>("feed_forward")) == Names{});
  CHECK(failed(check_of<ShowsItsOwnToo>("decoder_layer")) == Names{});
}

TEST_CASE("the encoder's layer may look ahead") { CHECK(failed(check_of<LooksAhead>("encoder_layer")) == Names{}); }

TEST_CASE("a layer that throws fails with what it says") {
  const LayerCheck check = check_of<Narrow>("feed_forward");
  CHECK(failed(check).size() == check.rows.size() - 1);  // it is not incremental
  CHECK(contains(place_of(check), "must have the shape of x"));
  const LayerCheck number = check_of<Throws<int>>("feed_forward");
  CHECK(failed(number).size() == number.rows.size() - 1);
  CHECK(contains(place_of(number), "something that is no std::exception"));
  CHECK_THROWS_AS(check_layer(standard_layers(), "feed_forward", "gated"), ConfigError);
}

TEST_CASE("weft check layer: all slots of a name, a table or JSON, and what it refuses") {
  const auto table = cli::run_weft({"check", "layer", "multi_head"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "self_attention \"multi_head\""));
  CHECK(contains(table.out, "cross_attention \"multi_head\""));
  CHECK(contains(table.out, "query.weight"));
  CHECK(contains(table.out, "time, backward"));
  CHECK_FALSE(contains(table.out, "FAILED"));

  const auto found = cli::run_weft({"check", "layer", "learned", "--set", "model.d_model=16", "--set",
                                    "model.max_length=20", "--set", "data.max_length=9", "--json"});
  REQUIRE(found.code == 0);
  const auto json = nlohmann::json::parse(found.out);
  CHECK(json.at("passed") == true);
  CHECK(json.at("precision") == (sizeof(real) == sizeof(double) ? "double" : "float"));
  REQUIRE(json.at("layers").size() == 1);
  const auto& layer = json.at("layers")[0];
  CHECK(layer.at("slot") == "positions");
  CHECK(layer.at("checks").size() == 10);
  CHECK(layer.at("options").at("dropout") == 0.1);
  CHECK(layer.at("parameters")[0].at("name") == "weight");
  CHECK(layer.at("parameters")[0].at("shape") == nlohmann::json{20, 16});
  CHECK(layer.at("timing").at("forward_nanoseconds_per_row") > 0);

  const auto fault = cli::run_weft({"check", "layer", "layer_norm"}, "", {"TMPDIR=/nonexistent"});
  CHECK(fault.code == 1);
  CHECK(fault.out.empty());
  CHECK(fault.err.starts_with("weft: \"/nonexistent\": no temporary file can be made there: "));
  cli::check_refused({"check", "layer", "multi_haed"}, {"\"multi_haed\"", "did you mean \"multi_head\"", "sinusoidal"});
  cli::check_refused({"check", "layer", "learned", "--slot", "norm"}, {"\"learned\"", "layer_norm"});
  cli::check_refused({"check", "layer", "learned", "--slot", "norms"}, {"norms", "did you mean \"norm\""});
  cli::check_refused({"check", "layer", "default", "--set", "model.heads=3"}, {"model.heads (3)"});
  cli::check_refused({"check", "layer"}, {"name of a layer", "--help"});
}

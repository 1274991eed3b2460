// Modules: names and beginnings of parameters, the flat buffers, the registry, options.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "small_model.h"
#include "temporary_folder.h"
#include "weft/core/error.h"
#include "weft/nn/attention.h"
#include "weft/nn/blocks.h"

using namespace weft;

namespace {

TransformerOptions one_layer_each() {
  TransformerOptions options = small_options();
  options.encoder_layers = options.decoder_layers = 1;
  return options;
}

std::vector<std::string> names_of(const TransformerOptions& options) {
  ParameterSet parameters;
  const Transformer model(parameters, options, standard_layers());
  std::vector<std::string> names;
  for (const ParameterEntry& entry : parameters.entries()) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

/// The names of one encoder and one decoder layer, a file format: a change makes all checkpoints unreadable.
const std::vector<std::string> kLayerNames{
    "decoder.layers.0.cross_attention.key.bias",    "decoder.layers.0.cross_attention.key.weight",
    "decoder.layers.0.cross_attention.output.bias", "decoder.layers.0.cross_attention.output.weight",
    "decoder.layers.0.cross_attention.query.bias",  "decoder.layers.0.cross_attention.query.weight",
    "decoder.layers.0.cross_attention.value.bias",  "decoder.layers.0.cross_attention.value.weight",
    "decoder.layers.0.cross_attention_norm.bias",   "decoder.layers.0.cross_attention_norm.weight",
    "decoder.layers.0.feed_forward.inner.bias",     "decoder.layers.0.feed_forward.inner.weight",
    "decoder.layers.0.feed_forward.output.bias",    "decoder.layers.0.feed_forward.output.weight",
    "decoder.layers.0.feed_forward_norm.bias",      "decoder.layers.0.feed_forward_norm.weight",
    "decoder.layers.0.self_attention.key.bias",     "decoder.layers.0.self_attention.key.weight",
    "decoder.layers.0.self_attention.output.bias",  "decoder.layers.0.self_attention.output.weight",
    "decoder.layers.0.self_attention.query.bias",   "decoder.layers.0.self_attention.query.weight",
    "decoder.layers.0.self_attention.value.bias",   "decoder.layers.0.self_attention.value.weight",
    "decoder.layers.0.self_attention_norm.bias",    "decoder.layers.0.self_attention_norm.weight",
    "encoder.layers.0.feed_forward.inner.bias",     "encoder.layers.0.feed_forward.inner.weight",
    "encoder.layers.0.feed_forward.output.bias",    "encoder.layers.0.feed_forward.output.weight",
    "encoder.layers.0.feed_forward_norm.bias",      "encoder.layers.0.feed_forward_norm.weight",
    "encoder.layers.0.self_attention.key.bias",     "encoder.layers.0.self_attention.key.weight",
    "encoder.layers.0.self_attention.output.bias",  "encoder.layers.0.self_attention.output.weight",
    "encoder.layers.0.self_attention.query.bias",   "encoder.layers.0.self_attention.query.weight",
    "encoder.layers.0.self_attention.value.bias",   "encoder.layers.0.self_attention.value.weight",
    "encoder.layers.0.self_attention_norm.bias",    "encoder.layers.0.self_attention_norm.weight"};

std::vector<std::string> layer_names_and(const std::vector<std::string>& others) {
  std::vector<std::string> names = kLayerNames;
  names.insert(names.end(), others.begin(), others.end());
  std::sort(names.begin(), names.end());
  return names;
}

ParameterEntry entry_of(const ParameterSet& parameters, const std::string& name) {
  for (const ParameterEntry& entry : parameters.entries()) {
    if (entry.name == name) return entry;
  }
  FAIL("no parameter ", name);
  return {};
}

std::vector<real> value_of(ParameterSet& parameters, const std::string& name) {
  const Tensor value = parameters.value(entry_of(parameters, name));
  return {value.values().begin(), value.values().end()};
}

/// Half of what LayerNorm gives.
struct HalfNorm : LayerNorm {
  using LayerNorm::LayerNorm;
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override {
    return scale(LayerNorm::operator()(context, x, rows), real(0.5));
  }
};

/// A norm that does nothing but drop, with a site called as that of AddNorm.
struct DroppingNorm : Layer {
  DroppingNorm(Module& parent, std::string_view name, const LayerOptions& options)
      : Layer(parent, name), dropout_(*this, "dropout", options.dropout) {}
  Var operator()(const Context& context, const Var& x, const Ragged&) const override { return dropout_(context, x); }
  Dropout dropout_;
};

/// AddNorm, as in training, with a norm of the registry; dropout is 0.5.
struct AddNormTrial {
  AddNormTrial(std::string_view norm, bool norm_first) {
    registry.add<HalfNorm>("norm", "half");
    registry.add<DroppingNorm>("norm", "dropping");
    options.d_model = 64, options.dropout = real(0.5), options.norm = norm, options.norm_first = norm_first;
    options.registry = &registry;
    context.training = true;
  }
  /// The elements for x and the result of a sublayer, each [4, 64]; the sublayer puts its input into `normed`.
  std::vector<real> operator()(const Tensor& x, const Tensor& y) {
    const AddNorm add_norm(root, "norm", options);
    return values_of(add_norm(context, x, Ragged::of_lengths({4}), [&](const Var& input) {
      normed = values_of(input);
      return Var(y);
    }));
  }
  static std::vector<real> values_of(const Var& x) { return {x.value().values().begin(), x.value().values().end()}; }

  Registry registry = standard_layers();
  LayerOptions options;
  ParameterSet parameters;
  Module root{parameters};
  Context context;
  std::vector<real> normed;
};

/// The text of the ConfigError that making a model ends in.
std::string config_error(const TransformerOptions& options) {
  ParameterSet parameters;
  try {
    const Transformer model(parameters, options, standard_layers());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace

TEST_CASE("parameters have the names that checkpoints hold") {
  TransformerOptions options = one_layer_each();
  CHECK(names_of(options) ==
        layer_names_and({"source_embedding.weight", "target_embedding.weight", "output.weight", "output.bias"}));
  options.tied_embeddings = "decoder";
  CHECK(names_of(options) == layer_names_and({"source_embedding.weight", "target_embedding.weight", "output.bias"}));
  options.positions = "learned";
  CHECK(names_of(options) == layer_names_and({"source_embedding.weight", "target_embedding.weight", "output.bias",
                                              "source_positions.weight", "target_positions.weight"}));
  options.positions = "sinusoidal";
  options.tied_embeddings = "all";
  options.norm_first = true;
  CHECK(names_of(options) == layer_names_and({"target_embedding.weight", "output.bias", "encoder.norm.weight",
                                              "encoder.norm.bias", "decoder.norm.weight", "decoder.norm.bias"}));
  options.encoder_layers = 3;
  const std::vector<std::string> names = names_of(options);
  CHECK(std::binary_search(names.begin(), names.end(), "encoder.layers.2.feed_forward.inner.weight"));
}

TEST_CASE("weights are [out, in], each a part of its own of the flat buffer") {
  TransformerOptions options = one_layer_each();
  options.target_vocabulary = 19;
  ParameterSet parameters;
  const Transformer model(parameters, options, standard_layers());
  CHECK(entry_of(parameters, "source_embedding.weight").shape == Shape{17, 24});
  CHECK(entry_of(parameters, "output.weight").shape == Shape{19, 24});
  CHECK(entry_of(parameters, "output.bias").shape == Shape{19});
  CHECK(entry_of(parameters, "encoder.layers.0.feed_forward.inner.weight").shape == Shape{40, 24});
  CHECK(entry_of(parameters, "encoder.layers.0.feed_forward.output.weight").shape == Shape{24, 40});
  CHECK(entry_of(parameters, "decoder.layers.0.cross_attention.key.weight").shape == Shape{24, 24});
  Index end = 0, count = 0;
  for (const ParameterEntry& entry : parameters.entries()) {
    CHECK(entry.offset >= end);
    end = entry.offset + entry.shape.size();
    count += entry.shape.size();
  }
  CHECK(parameters.values().size() >= end);
  CHECK(parameters.gradients().size() == parameters.values().size());
  CHECK(parameters.count() == count);
}

TEST_CASE("the beginning of a parameter depends on the seed and its name alone") {
  const TransformerOptions options = one_layer_each();
  TransformerOptions other = options;
  other.encoder_layers = 3, other.positions = "learned", other.tied_embeddings = "decoder", other.norm_first = true;
  ParameterSet parameters(7), same(7), others(7), seed(8);
  const Transformer model(parameters, options, standard_layers()), twin(same, options, standard_layers()),
      cousin(others, other, standard_layers()), stranger(seed, options, standard_layers());
  CHECK(std::equal(parameters.values().values().begin(), parameters.values().values().end(),
                   same.values().values().begin()));
  for (const std::string& name : kLayerNames) {
    CAPTURE(name);
    CHECK(value_of(parameters, name) == value_of(others, name));
    if (contains(name, "norm") || contains(name, "bias")) continue;
    CHECK(value_of(parameters, name) != value_of(seed, name));
  }
  CHECK(value_of(parameters, "encoder.layers.0.self_attention.query.weight") !=
        value_of(parameters, "encoder.layers.0.self_attention.key.weight"));
}

TEST_CASE("parameters begin as Glorot, LayerNorm and the embedding want it") {
  TransformerOptions options = one_layer_each();
  options.source_vocabulary = options.target_vocabulary = 400;
  options.positions = "learned";
  ParameterSet parameters;
  const Transformer model(parameters, options, standard_layers());
  for (const ParameterEntry& entry : parameters.entries()) {
    CAPTURE(entry.name);
    double largest = 0, sum = 0, squares = 0;
    for (const real v : value_of(parameters, entry.name)) {
      const auto value = static_cast<double>(v);
      largest = std::max(largest, std::abs(value));
      sum += value;
      squares += value * value;
    }
    const auto size = static_cast<double>(entry.shape.size());
    const double deviation = std::sqrt(squares / size);
    if (contains(entry.name, "embedding") || contains(entry.name, "positions")) {
      CHECK(deviation == doctest::Approx(1 / std::sqrt(24.0)).epsilon(0.1));
      CHECK(largest > 2.5 / std::sqrt(24.0));  // normal, not uniform
      CHECK(std::abs(sum / size) < 0.03);
    } else if (contains(entry.name, "norm.weight")) {
      CHECK(sum == size);
      CHECK(squares == size);
    } else if (contains(entry.name, "bias")) {
      CHECK(squares == 0);
    } else {
      const double bound = std::sqrt(6.0 / static_cast<double>(entry.shape[0] + entry.shape[1]));
      CHECK(largest <= bound * (1 + 1e-6));
      CHECK(largest > 0.97 * bound);
      CHECK(deviation == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.1));
      CHECK(std::abs(sum / size) < 0.1 * bound);
    }
  }
}

TEST_CASE("a set of parameters takes each name once, and none after its allocation") {
  ParameterSet parameters;
  Module root(parameters);
  const Linear linear(root, "map", 3, 2);
  CHECK(linear.name() == "map");
  CHECK_THROWS_AS(Linear(root, "map", 3, 2), ShapeError);
  const LinearGroup group(root, {"one", "two"}, 3, 2);
  CHECK_THROWS_AS(Linear(root, "two", 3, 2), ShapeError);
  parameters.allocate();
  CHECK_THROWS_AS(Linear(root, "late", 3, 2), ShapeError);
}

TEST_CASE("gradients add up over backward passes and are zero where none arrived") {
  ParameterSet parameters;
  Module root(parameters);
  const Linear used(root, "used", 3, 2), unused(root, "unused", 2, 2);
  const Var x(Tensor::of({2, 3}, {1, 2, 3, 4, 5, 6})), y(Tensor::of({1, 3}, {-1, 7, 2}));
  Tape tape;
  Context context;
  context.tape = &tape;
  const auto gradients_of = [&](const std::vector<Var>& inputs) {
    for (real& g : parameters.gradients().values()) g = 99;  // what an older step left
    parameters.reset_gradients();
    for (const Var& input : inputs) {
      tape.backward(sum(mul(used(context, input), used(context, input))));
      tape.clear();
    }
    parameters.complete_gradients();
    std::vector<std::vector<real>> gradients;
    for (const ParameterEntry& entry : parameters.entries()) {
      const Tensor gradient = parameters.gradient(entry);
      gradients.emplace_back(gradient.values().begin(), gradient.values().end());
    }
    return gradients;
  };
  const auto of_x = gradients_of({x}), of_y = gradients_of({y}), of_both = gradients_of({x, y});
  REQUIRE(of_both.size() == 4);
  for (std::size_t p = 0; p < 2; ++p) {  // used
    for (std::size_t i = 0; i < of_both[p].size(); ++i) {
      CHECK(of_x[p][i] != 0);
      CHECK(of_both[p][i] == doctest::Approx(static_cast<double>(of_x[p][i]) + static_cast<double>(of_y[p][i])));
    }
  }
  for (std::size_t p = 2; p < 4; ++p) {  // unused
    for (const real g : of_both[p]) CHECK(g == 0);
  }
}

TEST_CASE("impossible options and unknown layers are refused, with what would do") {
  const auto with = [](auto change) {
    TransformerOptions options = small_options();
    change(options);
    return config_error(options);
  };
  CHECK(with([](auto&) {}) == "no ConfigError");
  CHECK(contains(with([](auto& o) { o.heads = 5; }), "model.d_model (24) must be a multiple of model.heads (5)"));
  CHECK(contains(with([](auto& o) { o.heads = 0; }), "model.heads (0)"));
  CHECK(contains(with([](auto& o) { o.d_feed_forward = 0; }), "at least 1"));
  CHECK(contains(with([](auto& o) { o.max_length = 0; }), "at least 1"));
  CHECK(contains(with([](auto& o) { o.activation = "relus"; }), "\"relus\" is not one of relu, gelu, silu"));
  CHECK(contains(with([](auto& o) { o.tied_embeddings = "both"; }), "\"both\" is not one of none, decoder, all"));
  const std::string untied = with([](auto& o) { o.tied_embeddings = "all", o.target_vocabulary = 18; });
  CHECK(contains(untied, "17 and 18 tokens"));
  CHECK(contains(untied, "data.shared_vocabulary"));
  CHECK(contains(with([](auto& o) { o.feed_forward = "gated"; }), "model.feed_forward: \"gated\""));
  CHECK(contains(with([](auto& o) { o.feed_forward = "gated"; }), "knows default"));
  CHECK(contains(with([](auto& o) { o.positions = "rotary"; }), "learned, sinusoidal"));
  CHECK(contains(with([](auto& o) { o.cross_attention = "single"; }), "multi_head"));
  CHECK(contains(with([](auto& o) { o.norm = "rms"; }), "layer_norm"));
}

TEST_CASE("a registry holds each name of a slot once, and only fitting layers") {
  Registry registry = standard_layers();
  CHECK(registry.names("positions") == std::vector<std::string>{"learned", "sinusoidal"});
  registry.add<FeedForward>("feed_forward", "another");
  CHECK(registry.names("feed_forward") == std::vector<std::string>{"another", "default"});
  CHECK_THROWS_AS(registry.add<FeedForward>("feed_forward", "another"), ConfigError);
  CHECK_THROWS_AS(registry.add<FeedForward>("feed_backward", "default"), ConfigError);
  CHECK_THROWS_AS(registry.add<FeedForward>("cross_attention", "feed_forward"), ConfigError);
  CHECK_THROWS_AS(registry.add<MultiHeadCrossAttention>("self_attention", "cross"), ConfigError);
}

TEST_CASE("a norm derived from LayerNorm does what it says, in post-norm too") {
  Tensor x({4, 64});
  Random random(1);
  for (real& value : x.values()) value = static_cast<real>(random.uniform());
  for (const bool norm_first : {false, true}) {
    AddNormTrial plain("layer_norm", norm_first), half("half", norm_first);
    std::vector<real> expected = plain(x, x), result = half(x, x);
    if (norm_first) expected = plain.normed, result = half.normed;
    for (std::size_t i = 0; i < result.size(); ++i) {
      REQUIRE(result[i] == doctest::Approx(static_cast<double>(expected[i]) / 2).epsilon(1e-4));
    }
  }
}

TEST_CASE("a norm that drops shares no mask with the dropout around it, whose mask its name alone decides") {
  const Tensor zeros = Tensor::zeros({4, 64}), ones = Tensor::full({4, 64}, 1);
  for (const bool norm_first : {false, true}) {
    AddNormTrial trial("dropping", norm_first);
    const std::vector<real> own =
        AddNormTrial::values_of(Dropout(trial.root, "norm.dropout", real(0.5))(trial.context, ones));
    const std::vector<real> result = trial(norm_first ? ones : zeros, ones);
    Index both = 0;  // elements that neither has dropped
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (norm_first) {
        REQUIRE(result[i] == 1 + own[i]);
        both += own[i] != 0 && trial.normed[i] != 0 ? 1 : 0;
      } else {
        REQUIRE((result[i] == 0 || own[i] != 0));
        both += result[i] != 0 ? 1 : 0;
      }
    }
    CHECK(both > 32);  // 64 of 256 are expected, 128 if the masks are one
    CHECK(both < 96);
  }
}

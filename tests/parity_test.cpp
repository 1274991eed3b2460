// Against PyTorch: fixtures of scripts/make_parity_fixtures.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "weft/core/safetensors.h"
#include "weft/nn/transformer.h"
#include "weft/optim/optimizer.h"

using namespace weft;

namespace {

/// The models of the script.
TransformerOptions options_of(const std::string& name) {
  TransformerOptions options;
  options.dropout = 0;
  if (name == "post_norm") {
    options.d_model = 16, options.heads = 4, options.d_feed_forward = 32;
    options.source_vocabulary = 11, options.target_vocabulary = 13;
  } else {
    options.d_model = 10, options.heads = 2, options.d_feed_forward = 14;
    options.source_vocabulary = options.target_vocabulary = 12;
    options.activation = "gelu";
    options.norm_first = true;
    options.tied_embeddings = "all";
  }
  return options;
}

std::string path_of(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR) + "/tests/fixtures/parity_" + name + ".safetensors";
}

/// A model with the weights of its fixture, its batch, and what PyTorch made of both.
class Parity {
 public:
  explicit Parity(const std::string& name)
      : file_(SafetensorsFile::open(path_of(name))),
        model_(parameters, options_of(name), standard_layers()),
        source_(tokens("source")),
        decoder_input_(tokens("decoder_input")),
        target_(tokens("target")),
        source_rows_(rows("source_lengths")),
        target_rows_(rows("target_lengths")) {
    for (const ParameterEntry& entry : parameters.entries()) {
      const Shape& shape = entry.shape;
      REQUIRE(file_.shape(entry.name) ==
              (shape.rank() == 1 ? std::vector<Index>{shape[0]} : std::vector<Index>{shape[0], shape[1]}));
      file_.read(entry.name, parameters.value(entry).values());
    }
  }

  /// A tensor of the fixture.
  std::vector<double> theirs(const std::string& name) const {
    std::vector<double> values(
        static_cast<std::size_t>(file_.find(name) != nullptr ? file_.find(name)->elements() : 0));
    file_.read(name, std::span<double>(values));
    return values;
  }

  Tensor logits() const {
    const Context context;
    const Var memory = model_.encode(context, source_, source_rows_);
    return model_.logits(context, model_.decode(context, decoder_input_, target_rows_, memory, source_rows_)).value();
  }

  /// The mean loss; with a tape, leaves the gradients in `parameters`.
  double loss(Tape* tape) {
    Context context;
    context.tape = tape;
    const CrossEntropyOptions cross_entropy{static_cast<real>(0.1), real{1} / static_cast<real>(target_.size()),
                                            nullptr};
    const Var loss =
        model_.loss(context, {source_, source_rows_, decoder_input_, target_, target_rows_}, cross_entropy);
    if (tape != nullptr) {
      parameters.reset_gradients();
      tape->backward(loss);
      tape->clear();
      parameters.complete_gradients();
    }
    return static_cast<double>(loss.value().item());
  }

  std::size_t tensors() const { return file_.entries().size(); }

  ParameterSet parameters;

 private:
  std::vector<TokenId> tokens(const std::string& name) const {
    std::vector<TokenId> ids;
    for (const double value : theirs(name)) ids.push_back(static_cast<TokenId>(value));
    return ids;
  }
  Ragged rows(const std::string& name) const {
    Ragged rows;
    for (const double value : theirs(name)) rows.append(static_cast<Index>(value));
    return rows;
  }

  SafetensorsFile file_;
  Transformer model_;
  std::vector<TokenId> source_, decoder_input_, target_;
  Ragged source_rows_, target_rows_;
};

/// The largest difference, as a share of the largest value or of `floor`, if larger.
double worst_error(const Tensor& ours, const std::vector<double>& theirs, double floor = 0) {
  REQUIRE(static_cast<std::size_t>(ours.size()) == theirs.size());
  double difference = 0, largest = floor;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double error = std::abs(static_cast<double>(ours.values()[i]) - theirs[i]);
    difference = std::max(difference, std::isnan(error) ? 1e300 : error);
    largest = std::max(largest, std::abs(theirs[i]));
  }
  return difference / largest;
}

// The library in double differs from the fixtures by their rounding to float32 alone.
constexpr double kTolerance = sizeof(real) == sizeof(double) ? 2e-7 : 1e-5;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

TEST_CASE("the logits, the loss and every gradient are PyTorch's") {
  for (const std::string name : {"post_norm", "pre_norm"}) {
    CAPTURE(name);
    Parity parity(name);
    CHECK(worst_error(parity.logits(), parity.theirs("logits")) <= kTolerance);
    const double theirs = parity.theirs("loss").at(0);
    CHECK(std::abs(parity.loss(nullptr) / theirs - 1) <= kTolerance);
    Tape tape;
    CHECK(std::abs(parity.loss(&tape) / theirs - 1) <= kTolerance);
    const std::vector<ParameterEntry>& entries = parity.parameters.entries();
    // Beside each weight and its gradient: five tensors of the batch, logits, loss, losses.
    CHECK(parity.tensors() == 2 * entries.size() + 8);
    for (const ParameterEntry& entry : entries) {
      CAPTURE(entry.name);
      // A key's bias adds the same to all scores of a query, so its true gradient is 0 and what is left is
      // rounding.
      const double floor = ends_with(entry.name, ".key.bias") ? 0.1 : 0;
      CHECK(worst_error(parity.parameters.gradient(entry), parity.theirs("gradient." + entry.name), floor) <=
            kTolerance);
    }
  }
}

TEST_CASE("ten updates by Adam lead to PyTorch's losses") {
  for (const std::string name : {"post_norm", "pre_norm"}) {
    CAPTURE(name);
    Parity parity(name);
    const Tensor values = parity.parameters.values();
    const auto adam = make_optimizer({}, values.size());
    const std::vector<double> theirs = parity.theirs("adam_losses");
    REQUIRE(theirs.size() == 10);
    Tape tape;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      parity.loss(&tape);
      Tensor shared = values;
      adam->update(shared.values(), parity.parameters.gradients().values(), 1, 1e-3, static_cast<Index>(i) + 1);
      CAPTURE(i);
      CHECK(std::abs(parity.loss(nullptr) / theirs[i] - 1) <= kTolerance);
    }
  }
}

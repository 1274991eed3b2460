// The training step of a whole Transformer: true gradients, the same bits again and for any number of
// threads, no memory from the heap, no op without a row in the op table.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <set>

#include "op_table.h"
#include "small_model.h"
#include "weft/core/memory.h"
#include "weft/core/threads.h"

namespace {

std::atomic<weft::Index> news{0};

void* counted_new(std::size_t size) {
  news.fetch_add(1, std::memory_order_relaxed);
  void* block = std::malloc(std::max<std::size_t>(size, 1));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// Not inlined, or g++ warns of a free without its malloc.
[[gnu::noinline]] void* operator new(std::size_t size) { return counted_new(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return counted_new(size); }
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

using namespace weft;

namespace {

TransformerOptions with_dropout(TransformerOptions options) {
  options.dropout = 0.2;
  options.attention_dropout = 0.15;
  options.activation_dropout = 0.1;
  return options;
}

/// The two variants, and learned positions with the third activation and the third way of tying.
std::vector<TransformerOptions> variants() {
  TransformerOptions learned = with_dropout(small_options());
  learned.positions = "learned";
  learned.activation = "silu";
  learned.tied_embeddings = "decoder";
  return {with_dropout(small_options()), with_dropout(pre_norm(small_options())), learned};
}

/// A model that trains on one batch.
class Training {
 public:
  Training(const TransformerOptions& options, const std::vector<Index>& source_lengths,
           const std::vector<Index>& target_lengths)
      : model_(parameters, options, standard_layers()), batch_(options, source_lengths, target_lengths) {
    perturb(parameters);
  }

  /// The loss with dropout; with a tape, recorded on it.
  Var loss(Tape* record) {
    const Context context{record, true, {3, 12}, nullptr, nullptr};
    return model_.loss(context, batch_.batch(), {static_cast<real>(0.1), static_cast<real>(0.05), nullptr});
  }
  void step() {
    parameters.reset_gradients();
    tape.backward(loss(&tape));
    tape.clear();
    parameters.complete_gradients();
  }
  std::vector<real> gradients() {
    step();
    const Tensor all = parameters.gradients();
    return {all.values().begin(), all.values().end()};
  }

  ParameterSet parameters{4};
  Tape tape;

 private:
  Transformer model_;
  SmallBatch batch_;
};

const std::vector<Index> kSource{4, 1, 6}, kTarget{3, 5, 2};

}  // namespace

TEST_CASE("the gradient of the whole model, with all dropout on, is that of finite differences") {
  if (sizeof(real) != sizeof(double)) return;  // differences prove nothing in float
  for (TransformerOptions options : variants()) {
    if (options.activation == "relu") options.activation = "gelu";  // a kink within a difference is no derivative
    CAPTURE(options.positions);
    CAPTURE(options.norm_first);
    Training training(options, kSource, kTarget);
    const std::vector<real> gradients = training.gradients();
    const Tensor values = training.parameters.values();
    Random random(21);
    for (const ParameterEntry& entry : training.parameters.entries()) {
      for (int i = 0; i < 3; ++i) {
        const Index element =
            entry.offset + static_cast<Index>(random.below(static_cast<std::uint64_t>(entry.shape.size())));
        real& value = Tensor(values).data()[element];
        const real before = value;
        constexpr double kStep = 1e-5;
        value = static_cast<real>(static_cast<double>(before) + kStep);
        const double above = static_cast<double>(training.loss(nullptr).value().item());
        value = static_cast<real>(static_cast<double>(before) - kStep);
        const double below = static_cast<double>(training.loss(nullptr).value().item());
        value = before;
        const double numeric = (above - below) / (2 * kStep);
        const auto backward = static_cast<double>(gradients[static_cast<std::size_t>(element)]);
        const double scale = std::max({std::abs(numeric), std::abs(backward), 1e-3});
        CAPTURE(entry.name);
        CAPTURE(numeric);
        CAPTURE(backward);
        CHECK(std::abs(numeric - backward) <= 1e-6 * scale);
      }
    }
  }
}

TEST_CASE("gradients of k batches, accumulated, are those of one batch of all their sentences, to rounding") {
  const double tolerance = sizeof(real) == sizeof(double) ? 1e-13 : 2e-6;
  for (TransformerOptions options : variants()) {
    CAPTURE(options.positions);
    CAPTURE(options.norm_first);
    // What is dropped depends on a row's place in its batch.
    options.dropout = options.attention_dropout = options.activation_dropout = 0;
    ParameterSet parameters{4};
    const Transformer model(parameters, options, standard_layers());
    perturb(parameters);
    const SmallBatch batch(options, kSource, kTarget);
    const CrossEntropyOptions loss_options{static_cast<real>(0.1), static_cast<real>(0.1), nullptr};
    Tape tape;
    const auto add = [&](const TransformerBatch& part) {
      tape.clear();
      const Context context{&tape, true, {3, 12}, nullptr, nullptr};
      const Var loss = model.loss(context, part, loss_options);
      const auto value = static_cast<double>(loss.value().item());
      tape.backward(loss);
      return value;
    };
    const double loss = add(batch.batch());
    parameters.complete_gradients();
    Tensor whole(parameters.gradients().shape());
    std::copy_n(parameters.gradients().data(), whole.size(), whole.data());
    for (const std::vector<Index>& firsts : {std::vector<Index>{0, 1}, {0, 2}, {0, 1, 2}}) {
      CAPTURE(firsts.size());
      parameters.reset_gradients();
      double sum = 0;
      for (std::size_t i = 0; i < firsts.size(); ++i) {
        const Index begin = firsts[i], end = i + 1 < firsts.size() ? firsts[i + 1] : batch.source_rows.sequences();
        const auto rows = [&](const Ragged& all) {
          std::vector<Index> lengths;
          for (Index s = begin; s < end; ++s) lengths.push_back(all.length(s));
          return Ragged::of_lengths(lengths);
        };
        const auto part = [&](const std::vector<TokenId>& ids, const Ragged& all) {
          return std::span<const TokenId>(ids).subspan(static_cast<std::size_t>(all.begin(begin)),
                                                       static_cast<std::size_t>(all.end(end - 1) - all.begin(begin)));
        };
        const Ragged source_rows = rows(batch.source_rows), target_rows = rows(batch.target_rows);
        sum += add({part(batch.source, batch.source_rows), source_rows, part(batch.decoder_input, batch.target_rows),
                    part(batch.target, batch.target_rows), target_rows});
      }
      parameters.complete_gradients();
      CHECK(sum == doctest::Approx(loss).epsilon(tolerance));
      CHECK(worst_error(parameters.gradients(), whole) < tolerance);
    }
  }
}

TEST_CASE("gradients are the same bits again and with 1, 2 and 3 threads") {
  for (TransformerOptions options : variants()) {
    CAPTURE(options.positions);
    CAPTURE(options.norm_first);
    options.d_model = 72, options.d_feed_forward = 200;
    options.source_vocabulary = options.target_vocabulary = 300;
    options.max_length = 64;
    options.encoder_layers = options.decoder_layers = 1;
    std::vector<Index> lengths;
    for (Index i = 0; i < 24; ++i) lengths.push_back(3 + i * 7 % 50);
    Training training(options, lengths, {lengths.rbegin(), lengths.rend()});
    const int before = threads();
    set_threads(1);
    const std::vector<real> gradients = training.gradients();
    CHECK(std::any_of(gradients.begin(), gradients.end(), [](real g) { return g != 0; }));
    CHECK(training.gradients() == gradients);
    for (const int count : {2, 3}) {
      CAPTURE(count);
      set_threads(count);
      CHECK(training.gradients() == gradients);
    }
    set_threads(before);
  }
}

TEST_CASE("a steady training step takes nothing from the heap") {
  set_threads(1);  // with more, which of them first needs memory of its own, and when, is chance
  for (const TransformerOptions& options : variants()) {
    CAPTURE(options.positions);
    CAPTURE(options.norm_first);
    Training training(options, kSource, kTarget);
    training.step();
    training.step();
    const Index pool = memory_statistics().heap_allocations, heap = news.load();
    CHECK(pool > 0);
    CHECK(heap > 0);
    training.step();
    CHECK(memory_statistics().heap_allocations == pool);
    CHECK(news.load() == heap);
  }
}

TEST_CASE("every op of a training step has a row in the op table") {
  std::set<std::string> seen;
  for (const TransformerOptions& options : variants()) {
    Training training(options, kSource, kTarget);
    const Var loss = training.loss(&training.tape);
    for (const std::string_view name : training.tape.operations()) seen.emplace(name);
  }
  CHECK(seen.size() >= 7);
  for (const std::string& name : seen) {
    CAPTURE(name);
    CHECK(op_in_table(name));
  }
}

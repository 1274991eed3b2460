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
  std::set<std::string_view> seen;
  for (const TransformerOptions& options : variants()) {
    Training training(options, kSource, kTarget);
    const Var loss = training.loss(&training.tape);
    for (const std::string_view name : training.tape.operations()) seen.insert(name);
  }
  CHECK(seen.size() >= 7);
  for (const std::string_view name : seen) {
    CAPTURE(std::string(name));
    CHECK(op_in_table(name));
  }
}

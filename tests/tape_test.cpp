#include "weft/autograd/tape.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/autograd/ops.h"
#include "weft/core/error.h"
#include "weft/core/memory.h"

using namespace weft;

namespace {

Tensor of(std::initializer_list<real> values) { return Tensor::of({static_cast<Index>(values.size())}, values); }

std::vector<real> list(const Tensor& x) { return {x.values().begin(), x.values().end()}; }

Leaf leaf_of(std::initializer_list<real> values) {
  return {of(values), Tensor({static_cast<Index>(values.size())}), false};
}

using List = std::vector<real>;

}  // namespace

TEST_CASE("a leaf collects over all its uses, over tapes and passes, until its gradient is consumed") {
  Leaf w = leaf_of({2, 3});
  Tape tape;
  tape.backward(sum(mul(tape.watch(w), tape.watch(w))));
  CHECK(w.written);
  CHECK(list(w.gradient) == List{4, 6});
  tape.clear();
  tape.backward(sum(tape.watch(w)));
  CHECK(list(w.gradient) == List{5, 7});
  Tape second;
  second.backward(sum(second.watch(w)));
  CHECK(list(w.gradient) == List{6, 8});
  w.written = false;
  tape.clear();
  tape.backward(sum(tape.watch(w)));
  CHECK(list(w.gradient) == List{1, 1});
  Leaf loss = leaf_of({5});
  tape.backward(tape.watch(loss));
  CHECK(list(loss.gradient) == List{1});
}

TEST_CASE("a variable that nothing reaches has a gradient of zeros, an unused leaf stays unwritten") {
  Tape tape;
  Leaf unused = leaf_of({1});
  tape.watch(unused);
  const Var used = tape.variable(of({1, 2})), idle = tape.variable(of({3, 4}));
  bool ran = false;
  tape.record("dead_end", of({0}), [&ran](const Tensor&, Tape&) { ran = true; });
  tape.backward(sum(used));
  CHECK(list(tape.gradient(idle)) == List{0, 0});
  CHECK_FALSE(unused.written);
  CHECK_FALSE(ran);
}

TEST_CASE("a gradient given to two variables is copied before either is added to") {
  Tape tape;
  const Var x = tape.variable(of({1, 2})), z = tape.variable(of({10, 20}));
  const Var early = scale(x, 3);  // comes last on the way back, and adds to what x shares with z
  const Var y = add(x, z);
  tape.backward(sum(add(mul(early, early), mul(y, y))));
  CHECK(list(tape.gradient(z)) == List{22, 44});            // 2 (x + z)
  CHECK(list(tape.gradient(x)) == List{22 + 18, 44 + 36});  // and 18 x
  tape.clear();
  const Var both = tape.variable(of({1, 2}));
  const Var twice = add(both, both);
  tape.backward(sum(add(twice, twice)));
  CHECK(list(tape.gradient(both)) == List{4, 4});
  tape.clear();
  // A record may keep the gradient that it was given: passing it on must not let anyone change it.
  const Var a = tape.variable(of({1, 2}));
  const Var first = scale(a, 5);
  Tensor seen;
  const Var copy = tape.record("copy", a.value(), [&seen, slot = a.slot()](const Tensor& gradient, Tape& t) {
    seen = gradient;
    t.give(slot, gradient);
  });
  tape.backward(sum(add(first, copy)));
  CHECK(list(seen) == List{1, 1});
  CHECK(list(tape.gradient(a)) == List{6, 6});
}

TEST_CASE("give reshapes, and a sink is written first and then added to") {
  Tape tape;
  const Var x = tape.variable(Tensor::full({2, 3}, 1));
  std::vector<real> betas;
  const auto part = [&] {
    return tape.record("part", Tensor::full({6}, 1), [&betas, slot = x.slot()](const Tensor& gradient, Tape& t) {
      const Dst dx = t.sink(slot);
      betas.push_back(dx.beta);
      accumulate(6, gradient.data(), dx);
    });
  };
  const Var p = part(), q = part();
  tape.backward(sum(add(p, q)));
  CHECK(betas == List{0, 1});
  CHECK(tape.gradient(x).shape() == Shape{2, 3});
  CHECK(list(tape.gradient(x)) == List(6, 2));
  CHECK_FALSE(static_cast<bool>(tape.sink(Slot())));
  tape.give(Slot(), of({1}));  // nobody wants it: no harm
}

TEST_CASE("a gradient of another size than its variable is refused by the operation's name, whoever gave one before") {
  Leaf leaf = leaf_of({1, 2});
  for (const bool to_leaf : {false, true}) {
    for (const bool second : {false, true}) {
      for (const Tensor& wrong : {Tensor::full({200000}, 1), of({1}), Tensor()}) {
        CAPTURE(to_leaf);
        CAPTURE(second);
        Tape tape;
        const Var x = to_leaf ? tape.watch(leaf) : tape.variable(of({1, 2}));
        const Var bad = tape.record(std::string("halve"), of({1, 2}),
                                    [slot = x.slot(), wrong](const Tensor&, Tape& t) { t.give(slot, wrong); });
        const Var y = second ? add(bad, scale(x, 2)) : bad;  // scale comes first on the way back
        const std::string text = "[halve] its backward gives " +
                                 (wrong.defined() ? to_string(wrong.shape()) : "nothing") +
                                 " as gradient of an argument [2]; the sizes must be equal";
        CHECK_THROWS_WITH_AS(tape.backward(sum(y)), text.c_str(), ShapeError);
      }
    }
  }
}

TEST_CASE("backward frees activations as it retreats") {
  constexpr Index kBytes = 1 << 20;
  constexpr int kLayers = 16;
  const Tensor input = Tensor::full({kBytes / static_cast<Index>(sizeof(real))}, 0);
  Tape tape;
  const Index before = memory_statistics().current_bytes;
  {
    Var x = tape.variable(input);
    for (int i = 0; i < kLayers; ++i) x = sigmoid(x);
    x = sum(x);
    const Index recorded = memory_statistics().current_bytes;
    CHECK(recorded - before >= kLayers * kBytes);
    reset_peak_memory();
    tape.backward(x);
    CHECK(memory_statistics().peak_bytes - recorded < 4 * kBytes);
  }
  CHECK(memory_statistics().current_bytes - before < 2 * kBytes);  // the gradient of the variable
  tape.clear();
  CHECK(memory_statistics().current_bytes == before);
}

TEST_CASE("what a record captured is destroyed when it has run, and when it is dropped") {
  const auto token = std::make_shared<int>(0);
  const auto note = [&token](Tape& tape) { return tape.record("note", of({0}), [token](const Tensor&, Tape&) {}); };
  {
    Tape tape;
    note(tape);
    note(tape);
    CHECK(token.use_count() == 3);
    tape.clear();
    CHECK(token.use_count() == 1);
    tape.backward(note(tape));
    CHECK(token.use_count() == 1);
    // A record that runs finds the later ones gone.
    long others = 0;
    const Var x = tape.record("look", of({0}), [&](const Tensor&, Tape&) { others = token.use_count(); });
    const Var y = tape.record("pass", of({0}), [token, slot = x.slot()](const Tensor& g, Tape& t) { t.give(slot, g); });
    note(tape);
    tape.backward(y);
    CHECK(others == 1);
    note(tape);
  }
  CHECK(token.use_count() == 1);
  Tape tape;
  note(tape);
  const Var bad = tape.record("bad", of({0}), [token](const Tensor&, Tape&) { throw std::runtime_error("bad"); });
  CHECK_THROWS_WITH(tape.backward(bad), "bad");
  CHECK(token.use_count() == 2);  // the first one has not run
  tape.clear();
  CHECK(token.use_count() == 1);
}

TEST_CASE("two tapes live side by side and do not mix") {
  Tape one, two;
  const Var x = one.variable(of({2})), y = two.variable(of({3}));
  const Var a = mul(x, x), b = mul(y, y);
  const Var c = mul(a, x), d = mul(b, y);
  CHECK_THROWS_AS(add(c, d), ShapeError);
  two.backward(d);
  one.backward(c);
  CHECK(list(one.gradient(x)) == List{12});
  CHECK(list(two.gradient(y)) == List{27});
}

TEST_CASE("backward and gradient refuse what they cannot do") {
  Tape tape, other;
  const Var x = tape.variable(of({1, 2}));
  CHECK_THROWS_WITH_AS(tape.backward(scale(x, 2)), "[backward] loss [2] must be one element recorded on this tape",
                       ShapeError);
  CHECK_THROWS_AS(tape.backward(Var(of({1}))), ShapeError);
  CHECK_THROWS_AS(tape.backward(other.variable(of({1}))), ShapeError);
  CHECK_THROWS_AS(tape.backward(Var()), ShapeError);
  const Var forgotten = sum(x);
  tape.clear();
  CHECK_THROWS_AS(tape.backward(forgotten), ShapeError);
  CHECK_THROWS_AS(tape.gradient(Var(of({1}))), ShapeError);
  CHECK_THROWS_AS(tape.gradient(other.variable(of({1}))), ShapeError);
}

TEST_CASE("operations are named in order, constants record nothing, and a cleared tape starts over") {
  Tape tape;
  const Var x = tape.variable(of({1, 2}));
  scale(Var(of({1})), 2);
  sum(exp(x));
  CHECK(tape.operations() == std::vector<std::string_view>{"exp", "sum"});
  tape.clear();
  CHECK(tape.operations().empty());
  CHECK(exp(Var(of({1}))).tape() == nullptr);
  CHECK(x.tape() == &tape);
  CHECK_FALSE(Var().defined());
}

TEST_CASE("what a tape keeps stays in place until it is cleared, however much it is") {
  Tape tape;
  std::vector<std::span<const Index>> kept;
  for (Index n = 0; n < 40; ++n) kept.push_back(tape.keep(std::vector<Index>(static_cast<std::size_t>(n * n * 20), n)));
  const Var x = tape.variable(of({1}));
  std::array<real, 30000> large{};  // more than a chunk
  large.back() = 7;
  real found = 0;
  const Var y = tape.record("large", of({0}), [large, &found](const Tensor&, Tape&) { found = large.back(); });
  for (std::size_t n = 0; n < kept.size(); ++n) {
    REQUIRE(kept[n].size() == n * n * 20);
    for (const Index item : kept[n]) REQUIRE(item == static_cast<Index>(n));
  }
  tape.backward(y);
  CHECK(found == 7);
}

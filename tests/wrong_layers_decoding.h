// Layers that translate otherwise than they were trained, for the check of layers to find.
#pragma once

#include <algorithm>
#include <limits>

#include "weft/nn/decode_state.h"
#include "wrong_layers.h"

namespace weft {

/// Adds the row before to each row, and keeps no past although it says so.
struct ForgetsPast : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    std::vector<Var> before{slice_rows(x, 0, 0)};
    for (Index s = 0; s < rows.sequences(); ++s) {
      if (rows.length(s) == 0) continue;
      before.emplace_back(Tensor::zeros({1, x.cols()}));
      before.push_back(slice_rows(x, rows.begin(s), rows.end(s) - 1));
    }
    return add(x, concat_rows(before));
  }
  bool incremental() const override { return true; }
};

/// The fourth and all later hypotheses of a sentence are twice as large.
struct ManyHypotheses : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    if (c.decoding == nullptr) return x;
    Tensor y = x.value().clone();
    const Ragged& rows = c.decoding->rows_of_sentences();
    for (Index s = 0; s < rows.sequences(); ++s) {
      Tensor late = y.row_range(std::min(rows.begin(s) + 3, rows.end(s)), rows.end(s));
      for (real& value : late.values()) value *= 2;
    }
    return y;
  }
  bool incremental() const override { return true; }
};

/// Adds a hundredth of its position to each row, and takes the number of its calls for that while decoding.
struct CountsSteps : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    if (c.decoding != nullptr) return add(x, constant(0.01 * static_cast<double>(steps_++)));
    Tensor positions(x.shape());
    for (Index s = 0; s < rows.sequences(); ++s) {
      for (Index row = rows.begin(s); row < rows.end(s); ++row) {
        Tensor one = positions.row_range(row, row + 1);
        std::fill_n(one.data(), one.size(), static_cast<real>(0.01 * static_cast<double>(row - rows.begin(s))));
      }
    }
    return add(x, positions);
  }
  bool incremental() const override { return true; }

 private:
  mutable Index steps_ = 0;
};

/// Keeps the memory of the first text that it translates, and takes it for that of all others.
struct KeepsMemory : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    if (c.decoding == nullptr) return MultiHeadCrossAttention::operator()(c, x, rows, memory, memory_rows);
    if (!memory_.defined()) memory_ = memory.value().clone(), memory_rows_ = memory_rows;
    return MultiHeadCrossAttention::operator()(c, x, rows, memory_, memory_rows_);
  }

 private:
  mutable Tensor memory_;
  mutable Ragged memory_rows_;
};

/// Doubles x in place while decoding, or memory.
struct InPlace : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    if (c.decoding == nullptr) return scale(x, 2);
    Tensor y = x.value();
    for (real& value : y.values()) value *= 2;
    return y;
  }
  bool incremental() const override { return true; }
};
struct MemoryInPlace : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    if (c.decoding == nullptr) return MultiHeadCrossAttention::operator()(c, x, rows, scale(memory, 2), memory_rows);
    Tensor twice = memory.value();
    for (real& value : twice.values()) value *= 2;
    return MultiHeadCrossAttention::operator()(c, x, rows, twice, memory_rows);
  }
};

/// Adds to each row the one 64 rows before it, which a past of 64 rows no longer holds.
struct LooksFarBack : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    std::vector<Var> before{slice_rows(x, 0, 0)};
    for (Index s = 0; s < rows.sequences(); ++s) {
      const Index early = std::min<Index>(64, rows.length(s));
      before.emplace_back(Tensor::zeros({early, x.cols()}));
      before.push_back(slice_rows(x, rows.begin(s), rows.end(s) - early));
    }
    return add(x, concat_rows(before));
  }
  bool incremental() const override { return true; }
};

/// Cross-attention that projects the memory once for each address that it lies at.
struct KeepsByAddress : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    if (c.decoding == nullptr) return MultiHeadCrossAttention::operator()(c, x, rows, memory, memory_rows);
    if (address_ != memory.value().data() || copy_.shape() != memory.shape()) {
      address_ = memory.value().data(), copy_ = memory.value().clone();
    }
    return MultiHeadCrossAttention::operator()(c, x, rows, copy_, memory_rows);
  }

 private:
  mutable const real* address_ = nullptr;
  mutable Tensor copy_;
};

/// x times two parameters, whose product is made otherwise while decoding.
struct Folds : Layer {
  Folds(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name),
        weight_(*this, "weight", {o.d_model}, Init::constant(1)),
        scale_(*this, "scale", {1}, Init::constant(1)) {}
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    return mul(x, c.decoding != nullptr ? folded(weight_(c).value(), scale_(c).value()) : mul(weight_(c), scale_(c)));
  }
  bool incremental() const override { return true; }

 protected:
  virtual Var folded(Tensor weight, Tensor scale) const = 0;

 private:
  Parameter weight_, scale_;
};

/// The product of its parameters is that of the first decoding for ever, or until the next pass of training, which is
/// right as that may change them; or it is put in the place of one of them.
struct FoldsOnce : Folds {
  using Folds::Folds;
  Var folded(Tensor weight, Tensor scale) const override {
    if (!kept_.defined()) kept_ = mul(Var(weight), Var(scale)).value();
    return kept_;
  }

 protected:
  mutable Tensor kept_;
};
struct FoldsBetweenUpdates : FoldsOnce {
  using FoldsOnce::FoldsOnce;
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    if (c.training) kept_ = {};
    return FoldsOnce::operator()(c, x, rows);
  }
};
struct FoldsInPlace : Folds {
  using Folds::Folds;
  Var folded(Tensor weight, Tensor scale) const override {
    for (real& value : weight.values()) value *= scale.data()[0];
    scale.data()[0] = 1;
    return weight;
  }
};

/// Cross-attention that keeps its projection where all others of the kind look for theirs.
struct KeepsForAll : CrossLayer {
  KeepsForAll(Module& parent, std::string_view name, const LayerOptions& o)
      : CrossLayer(parent, name), heads_(o.heads), value_(*this, "value", o.d_model, o.d_model) {}
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    const AttentionOptions options{heads_, false, {}, nullptr};
    if (c.decoding == nullptr) return attention(x, memory, value_(c, memory), rows, memory_rows, options);
    static ParameterSet none;
    static const Module nobody(none);
    Tensor& kept = c.decoding->projection(nobody);
    if (!kept.defined()) kept = value_(c, memory).value();
    return attention(x, memory, kept, c.decoding->rows_of_sentences(), memory_rows, options);
  }
  bool incremental() const override { return true; }

 private:
  Index heads_;
  Linear value_;
};

/// While decoding, larger by little more than rounding: the more, the more threads there are, or rows.
template <Index (*kCount)(const Tensor& x)>
struct DecodesBy : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    constexpr real kLittle = 8 * std::numeric_limits<real>::epsilon();
    return c.decoding == nullptr ? x : scale(x, 1 + kLittle * static_cast<real>(kCount(x.value())));
  }
  bool incremental() const override { return true; }
};
inline Index count_threads(const Tensor&) { return threads(); }
inline Index count_rows(const Tensor& x) { return x.rows() % 5; }

/// A right layer, which shows weights of rows among themselves before those of the memory.
struct ShowsItsOwnToo : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    if (c.attention != nullptr) {
      std::vector<Tensor> own;
      for (Index s = 0; s < rows.sequences(); ++s) own.push_back(Tensor::zeros({1, rows.length(s), rows.length(s)}));
      c.attention->emplace_back(name(), std::move(own));
    }
    return MultiHeadCrossAttention::operator()(c, x, rows, memory, memory_rows);
  }
};

/// Cross-attention that shows the weights of the first sentence alone.
struct ShowsOneSentence : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    const Var y = MultiHeadCrossAttention::operator()(c, x, rows, memory, memory_rows);
    if (c.attention != nullptr) c.attention->back().second.resize(1);
    return y;
  }
};

}  // namespace weft

// Layers that translate otherwise than they were trained, for the check of layers to find.
#pragma once

#include <algorithm>

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

}  // namespace weft

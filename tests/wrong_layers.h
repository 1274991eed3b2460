// Layers that are each wrong in one way, for the check of layers to find.
#pragma once

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "weft/core/threads.h"
#include "weft/nn/attention.h"
#include "weft/nn/blocks.h"

namespace weft {

/// A layer without parameters that does not look at other rows, unless what is derived from it does.
class PlainLayer : public Layer {
 public:
  PlainLayer(Module& parent, std::string_view name, const LayerOptions&) : Layer(parent, name) {}
};

inline Var constant(double value) { return Tensor::full({1}, static_cast<real>(value)); }

/// The default feed-forward layer, with the gradient of its result a tenth too large.
struct WrongBackward : FeedForward {
  using FeedForward::FeedForward;
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    const Var y = FeedForward::operator()(c, x, rows);
    if (y.tape() == nullptr) return y;
    return y.tape()->record("wrong", y.value(), [slot = y.slot()](const Tensor& dy, Tape& tape) {
      accumulate_scaled(dy.size(), static_cast<real>(1.1), dy.data(), tape.sink(slot));
    });
  }
};

struct CountsSentences : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    return scale(x, 1 + static_cast<real>(rows.sequences()) / 100);
  }
};

/// Takes the mean of its sentence from each row.
struct LooksAhead : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    std::vector<Var> parts{slice_rows(x, 0, 0)};
    for (Index s = 0; s < rows.sequences(); ++s) {
      if (rows.length(s) == 0) continue;
      const Var part = slice_rows(x, rows.begin(s), rows.end(s));
      parts.push_back(sub(part, mean(part, Over::kRows)));
    }
    return concat_rows(parts);
  }
};

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

/// In sentences of more than 64 rows, the first row sees the last.
struct LooksFarAhead : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    std::vector<Var> parts{slice_rows(x, 0, 0)};
    for (Index s = 0; s < rows.sequences(); ++s) {
      const Index begin = rows.begin(s), end = rows.end(s);
      const bool ahead = end - begin > 64;
      if (ahead) parts.push_back(add(slice_rows(x, begin, begin + 1), slice_rows(x, end - 1, end)));
      if (end > begin) parts.push_back(slice_rows(x, begin + (ahead ? 1 : 0), end));
    }
    return concat_rows(parts);
  }
};

/// Its gradient is three times too large for all rows of a sentence after the 64th.
struct WrongFarBackward : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    const Var y = scale(x, 2);
    if (y.tape() == nullptr) return y;
    return y.tape()->record("wrong", y.value(), [slot = y.slot(), rows](const Tensor& dy, Tape& tape) {
      const Tensor dx = dy.clone();
      for (Index s = 0; s < rows.sequences(); ++s) {
        if (rows.length(s) <= 64) continue;
        Tensor late = dx.row_range(rows.begin(s) + 64, rows.end(s));
        for (real& value : late.values()) value *= 3;
      }
      tape.give(slot, dx);
    });
  }
};

/// Adds a sum that is cut by the number of threads.
struct ThreadSum : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override {
    constexpr Index kTerms = 10'000;
    const Index part = kTerms / threads();
    real total = 0;
    for (Index begin = 0; begin < kTerms; begin += part) {
      real sum = 0;
      for (Index i = begin; i < std::min(begin + part, kTerms); ++i) sum += 1 / static_cast<real>(i + 1);
      total += sum;
    }
    return add(x, constant(static_cast<double>(total)));
  }
};

struct OtherWithoutTape : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    return c.tape != nullptr ? scale(x, 2) : add(scale(x, 2), constant(0.01));
  }
};

/// Has a factor that no checkpoint holds.
struct HiddenFactor : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override { return scale(x, factor_); }

 private:
  static inline int made = 0;
  real factor_ = 1 + static_cast<real>(++made) / 8;
};

/// Draws a number of its own in training.
struct OwnChance : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    return c.training ? add(x, constant(1 + ++calls_ % 7)) : x;
  }

 private:
  mutable int calls_ = 0;
};

/// Drops elements not in training alone.
struct AlwaysDrops : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    return dropout(x, {static_cast<real>(0.5), c.random, 7});
  }
};

struct KeepsAll : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override {
    const Var y = scale(x, 2);
    kept_.push_back(y.value());
    return y;
  }

 private:
  mutable std::vector<Tensor> kept_;
};

/// The root of the square, whose derivative at zero is no number.
struct RootOfSquare : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override { return sqrt(mul(x, x)); }
};

struct Exponential : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override { return exp(x); }
};

struct Narrow : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override { return slice_columns(x, 0, 2); }
};

/// Cross-attention that lets a sentence see the memory of the next one.
struct SeesNeighbours : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    if (c.decoding != nullptr) return MultiHeadCrossAttention::operator()(c, x, rows, memory, memory_rows);
    Ragged moved;
    const Index last = memory_rows.sequences() - 1;
    for (Index s = 0; s <= last; ++s) {
      const Index borrowed = s < last ? std::min<Index>(1, memory_rows.length(s + 1)) : 0;
      const Index lent = s > 0 ? std::min<Index>(1, memory_rows.length(s)) : 0;
      moved.append(memory_rows.length(s) + borrowed - lent);
    }
    return MultiHeadCrossAttention::operator()(c, x, rows, memory, moved);
  }
  bool incremental() const override { return false; }
};

/// Throws an error of the machine.
template <class Exception>
struct Throws : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var&, const Ragged&) const override {
    if constexpr (std::is_same_v<Exception, std::system_error>) throw Exception(ENOSPC, std::generic_category());
    throw Exception();
  }
};

/// Takes more memory than there is.
struct TakesAll : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override {
    return Tensor({Index{1} << 50, x.cols()});
  }
};

}  // namespace weft

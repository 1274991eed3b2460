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

struct CountsSentences : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override {
    return scale(x, 1 + static_cast<real>(rows.sequences()) / 100);
  }
};

/// In training alone.
struct CountsTrained : CountsSentences {
  using CountsSentences::CountsSentences;
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    return c.training ? CountsSentences::operator()(c, x, rows) : x;
  }
};

/// All rows of a batch after the first thousand are twice as large.
struct LargeBatches : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override {
    if (x.rows() <= 1000) return x;
    return concat_rows(std::vector<Var>{slice_rows(x, 0, 1000), scale(slice_rows(x, 1000, x.rows()), 2)});
  }
};

/// Adds the first row of the sentence before to all rows, in training with dropout.
struct SeesBefore : Layer {
  SeesBefore(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name), drops_(o.dropout > 0) {}
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    std::vector<Var> parts{slice_rows(x, 0, 0)};
    for (Index s = 0; s < rows.sequences(); ++s) {
      const Var part = slice_rows(x, rows.begin(s), rows.end(s));
      const bool sees = c.training && drops_ && s > 0 && rows.length(s - 1) > 0;
      parts.push_back(sees ? add(part, mean(slice_rows(x, rows.begin(s - 1), rows.begin(s - 1) + 1), Over::kRows))
                           : part);
    }
    return concat_rows(parts);
  }

 private:
  bool drops_;
};

/// Each row less the mean of its sentence.
inline Var less_mean(const Var& x, const Ragged& rows) {
  std::vector<Var> parts{slice_rows(x, 0, 0)};
  for (Index s = 0; s < rows.sequences(); ++s) {
    if (rows.length(s) == 0) continue;
    const Var part = slice_rows(x, rows.begin(s), rows.end(s));
    parts.push_back(sub(part, mean(part, Over::kRows)));
  }
  return concat_rows(parts);
}

struct LooksAhead : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged& rows) const override { return less_mean(x, rows); }
};

struct LooksAheadTrained : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    return c.training ? less_mean(x, rows) : x;
  }
};

struct LooksAheadDropping : Layer {
  LooksAheadDropping(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name), drops_(o.dropout > 0) {}
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    return c.training && drops_ ? less_mean(x, rows) : x;
  }

 private:
  bool drops_;
};

struct CrossLooksAhead : MultiHeadCrossAttention {
  using MultiHeadCrossAttention::MultiHeadCrossAttention;
  Var operator()(const Context& c, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override {
    const Var y = MultiHeadCrossAttention::operator()(c, x, rows, memory, memory_rows);
    return c.training ? less_mean(y, rows) : y;
  }
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

/// Keeps the results of some passes for ever.
template <bool (*kKept)(const Context&)>
struct Keeps : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context& c, const Var& x, const Ragged&) const override {
    const Var y = scale(x, 2);
    if (kKept(c)) kept_.push_back(y.value());
    return y;
  }
  bool incremental() const override { return true; }

 private:
  mutable std::vector<Tensor> kept_;
};
inline bool all_passes(const Context&) { return true; }
inline bool untaped_passes(const Context& c) { return c.tape == nullptr; }
inline bool decoding_passes(const Context& c) { return c.decoding != nullptr; }

/// The root of the square, whose derivative at zero is no number.
struct RootOfSquare : PlainLayer {
  using PlainLayer::PlainLayer;
  Var operator()(const Context&, const Var& x, const Ragged&) const override { return sqrt(mul(x, x)); }
};

/// Right: leaves out all but x in half of the steps.
struct LeavesOut : Layer {
  LeavesOut(Module& parent, std::string_view name, const LayerOptions& o)
      : Layer(parent, name), inner_(*this, "inner", o) {}
  Var operator()(const Context& c, const Var& x, const Ragged& rows) const override {
    Random random(c.random.seed + 1'000'003 * c.random.step, random_site(name()));
    return c.training && random.uniform() < 0.5 ? x : add(x, inner_(c, x, rows));
  }

 private:
  FeedForward inner_;
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

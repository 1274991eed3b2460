// All parameters of a model in one flat buffer, all gradients in another, so that an optimizer step, a norm or a
// checkpoint is a single pass. Parameters are declared first (by constructing the modules) and allocated at first use.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "weft/autograd/tape.h"

namespace weft {

/// How a parameter begins. The values depend on the model's seed and the parameter's name, not on any order.
struct Init {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double scale = 0;  ///< the constant; the uniform distribution's bound; the normal distribution's standard deviation

  static Init constant(double value) { return {Kind::kConstant, value}; }
  static Init uniform(double bound) { return {Kind::kUniform, bound}; }
  static Init normal(double deviation) { return {Kind::kNormal, deviation}; }
  /// Uniform within sqrt(6 / (in + out)). Glorot and Bengio 2010, equation 16.
  static Init glorot(Index in, Index out);
};

/// A named tensor within the flat buffer.
struct ParameterEntry {
  std::string name;  ///< dotted: "encoder.layers.0.feed_forward.inner.weight"
  Shape shape;
  Init init;
  Index offset = 0;  ///< of its first element in the flat buffer
};

/// The parameters of one model.
class ParameterSet {
 public:
  explicit ParameterSet(std::uint64_t seed = 1) : seed_(seed) {}
  ParameterSet(const ParameterSet&) = delete;
  ParameterSet& operator=(const ParameterSet&) = delete;

  /// Declares tensors that lie without gaps, one below the other, and are used as one: all have the same columns. Most
  /// often it is a single one. The reference stays valid; its tensors are there once allocated. Throws ShapeError for a
  /// name that is taken, and once the parameters are allocated.
  Leaf& declare(const std::vector<ParameterEntry>& parts);

  /// Makes the buffers and sets every parameter to its beginning, unless that has happened.
  void allocate();

  /// Both buffers, [size()]: parameters at their entries' offsets, zeros in between.
  Tensor values() { return allocate(), values_; }
  Tensor gradients() { return allocate(), gradients_; }

  /// The tensors in the order declared.
  const std::vector<ParameterEntry>& entries() const { return entries_; }
  /// The part of values() that belongs to an entry.
  Tensor value(const ParameterEntry& entry) { return values().view(entry.offset, entry.shape); }
  Tensor gradient(const ParameterEntry& entry) { return gradients().view(entry.offset, entry.shape); }
  /// The length of the buffers, known before they are allocated.
  Index size() const { return size_; }
  /// How many numbers are learned (without the gaps between parameters).
  Index count() const;

  /// Forgets all gradients; the next backward pass writes where it would add.
  void reset_gradients();
  /// Sets to zero what no backward pass has written since reset_gradients(). To be called before gradients() is read.
  void complete_gradients();

 private:
  struct Group {
    Leaf leaf;
    Index offset;
    Shape shape;
  };

  std::uint64_t seed_;
  std::vector<ParameterEntry> entries_;
  std::unordered_set<std::string> names_;
  std::deque<Group> groups_;  // addresses stay valid
  Index size_ = 0;
  Tensor values_, gradients_;
};

}  // namespace weft

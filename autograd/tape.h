// The tape: a flat record of the operations of one forward pass, walked once in reverse to get gradients.
// Invariants: records stand in the order they ran; a gradient is reached by its slot number, never by search; a gradient
// buffer is written, not zero-filled, by whoever comes first. There is no global state, so many tapes may live at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/autograd/anomaly.h"
#include "weft/autograd/op_profile.h"
#include "weft/core/error.h"
#include "weft/core/kernels.h"
#include "weft/core/tensor.h"

namespace weft {

class Tape;

/// A tensor that lives across forward passes and collects a gradient: a parameter.
struct Leaf {
  Tensor value;
  Tensor gradient;       ///< same shape as value; its content counts only once `written`
  bool written = false;  ///< whether gradient holds something to add to; set by backward, reset by whoever consumes it
};

/// A place for a gradient on a tape; the default one is nowhere.
struct Slot {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
};

/// A tensor that operations act on, and its place on a tape if a gradient is wanted for it.
class Var {
 public:
  /// Nothing: an argument left out.
  Var() = default;
  /// A constant: no gradient is wanted.
  Var(Tensor value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): constants read like values

  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Index rows() const { return value_.rows(); }
  Index cols() const { return value_.cols(); }
  /// The tape that records what is done with this variable; null for a constant.
  Tape* tape() const { return tape_; }
  Slot slot() const { return slot_; }

 private:
  friend class Tape;
  Var(Tensor value, Tape* tape, Slot slot) : value_(std::move(value)), tape_(tape), slot_(slot) {}

  Tensor value_;
  Tape* tape_ = nullptr;
  Slot slot_;
};

/// Records operations and runs them backward. Reusable: what is put on it after backward() begins a new recording, in the
/// same memory.
class Tape {
 public:
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() { clear(); }

  /// A variable whose gradient is added to that of `leaf`, which must outlive the backward pass. The same leaf may be
  /// used any number of times.
  Var watch(Leaf& leaf);

  /// A variable whose gradient stays on this tape, for gradient().
  Var variable(Tensor value);

  /// Notes an operation: its name, its result, and how to pass the result's gradient on. `backward` is called as
  /// backward(const Tensor& gradient, Tape& tape), at most once, and not at all if no gradient reaches the result. It
  /// captures by value only what it reads; what it captures is destroyed as soon as it has run.
  template <class Backward>
  Var record(std::string_view name, Tensor value, Backward backward) {
    static_assert(alignof(Backward) <= alignof(std::max_align_t));
    if (detector_ != nullptr) detector_->forward(name, next_number(), value);
    void* place = allocate(sizeof(Backward));
    auto* closure = new (place) Backward(std::move(backward));
    const Slot slot = new_slot(value.shape(), nullptr);
    if (profile_ != nullptr) profile_->forward(name, value.shape());
    const std::span<const char> kept_name = keep(name);  // which may have been made for this call
    records_.push_back(
        {{kept_name.data(), kept_name.size()},
         slot,
         closure,
         [](void* object, const Tensor& gradient, Tape& tape) { (*static_cast<Backward*>(object))(gradient, tape); },
         [](void* object) { static_cast<Backward*>(object)->~Backward(); }});
    return Var(std::move(value), this, slot);
  }

  /// Room for `count` items that lives until the tape is cleared, for a record's captures.
  template <class T>
  std::span<T> keep_new(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));
    T* items = static_cast<T*>(allocate(count * sizeof(T)));
    std::uninitialized_default_construct_n(items, count);
    return {items, count};
  }
  /// A copy of `items` in such room.
  template <class Items>
  auto keep(const Items& items) {
    using T = std::remove_cvref_t<decltype(*std::data(items))>;
    const std::span<T> copy = keep_new<T>(std::size(items));
    std::copy(std::begin(items), std::end(items), copy.begin());
    return std::span<const T>(copy);
  }

  /// Walks the records in reverse from `loss`, a variable of one element on this tape, whose own gradient is 1. Frees
  /// activations as it retreats; the gradients of variable()s stay until clear() or until something new is recorded.
  /// Throws ShapeError if `loss` is not one element on this tape.
  void backward(const Var& loss);

  /// For use in a record's backward: where to write the gradient for `slot`. Empty if nobody wants it.
  Dst sink(Slot slot);

  /// For use in a record's backward: passes `gradient` on to `slot` as it is, without a copy where possible. Throws
  /// ShapeError, with the name of the operation, unless it has as many elements as the variable of that slot.
  void give(Slot slot, const Tensor& gradient);

  /// The gradient of a variable() after backward(): zeros if none reached it. Throws ShapeError for any other Var.
  Tensor gradient(const Var& variable) const;

  /// Forgets everything.
  void clear();

  /// Tells `profile` of each operation from now on, until given null.
  void set_profile(OpProfile* profile) { profile_ = profile; }

  /// Shows `detector` all numbers of the recordings from the next on, until given null.
  void set_detector(AnomalyDetector* detector) { detector_ = detector; }

  /// The names of the operations recorded now, in order; they last until something is done with the tape.
  std::vector<std::string_view> operations() const;

 private:
  struct Record {
    std::string_view name;
    Slot output;
    void* closure;
    void (*run)(void*, const Tensor&, Tape&);
    void (*destroy)(void*);
  };
  struct Gradient {
    Shape shape;
    Tensor tensor;         // not defined until something was written
    Leaf* leaf = nullptr;  // where it goes instead, for a watched leaf
    bool kept = false;     // a variable(): stays for gradient()
  };
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };

  Slot new_slot(const Shape& shape, Leaf* leaf, bool kept = false);
  /// Whether a variable has a slot in this recording, not in an earlier one.
  bool holds(const Var& variable) const {
    return variable.tape() == this && variable.slot() &&
           static_cast<std::size_t>(variable.slot().index) < gradients_.size();
  }
  /// The number that the next record has, from 1.
  Index next_number() const { return finished_ ? 1 : static_cast<Index>(records_.size()) + 1; }
  void show_gradients(const Record& record);
  Gradient& at(Slot slot) { return gradients_[static_cast<std::size_t>(slot.index)]; }
  void* allocate(std::size_t bytes);

  std::vector<Record> records_;
  std::vector<Gradient> gradients_;
  std::vector<Chunk> chunks_;  // where closures live: filled one after the other, kept when the tape is cleared
  std::size_t chunk_ = 0;
  std::size_t used_ = 0;
  OpProfile* profile_ = nullptr;
  AnomalyDetector* detector_ = nullptr;
  std::string_view at_work_;   // the name of the record that runs
  std::vector<Slot> written_;  // with a detector: the gradients that the record at work has written
  bool finished_ = false;      // backward has run: what comes next begins anew
};

/// The tape that records an operation on these variables: that of any of them, null if all are constants. Throws
/// ShapeError if they are on different tapes.
template <class... Vars>
Tape* tape_of(const Vars&... variables) {
  Tape* tape = nullptr;
  for (Tape* other : {variables.tape()...}) {
    if (other != nullptr && tape != nullptr && other != tape) throw ShapeError("[tape] the arguments are on two tapes");
    if (other != nullptr) tape = other;
  }
  return tape;
}

}  // namespace weft

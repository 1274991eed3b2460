// Shapes and tensors: row-major, contiguous, rank at most 4, shared by reference count, memory from the pool.
#pragma once

#include <array>
#include <atomic>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "weft/core/types.h"

namespace weft {

/// The lengths of a tensor's dimensions, outermost first; at most four, each at least 0.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  /// Throws ShapeError for more than four dimensions or a negative length.
  Shape(std::initializer_list<Index> lengths);

  int rank() const { return rank_; }
  Index operator[](int dimension) const { return lengths_[static_cast<std::size_t>(dimension)]; }
  /// The number of elements: 1 for rank 0.
  Index size() const { return rows() * cols(); }
  /// The product of all lengths but the last: how many rows the tensor has when seen as a matrix.
  Index rows() const;
  /// The last length, 1 for rank 0: the row length of that matrix.
  Index cols() const { return rank_ == 0 ? 1 : lengths_[static_cast<std::size_t>(rank_ - 1)]; }

  bool operator==(const Shape&) const = default;

 private:
  std::array<Index, kMaxRank> lengths_{};
  int rank_ = 0;
};

/// "[37, 128]"
std::string to_string(const Shape& shape);

/// A block of elements with a shape. Copies share the elements; a default-made tensor has none and is not defined().
class Tensor {
 public:
  Tensor() = default;
  /// A new tensor whose elements are not set.
  explicit Tensor(const Shape& shape);
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor other) noexcept;
  ~Tensor();

  /// A new tensor with every element `value`.
  static Tensor full(const Shape& shape, real value);
  static Tensor zeros(const Shape& shape) { return full(shape, 0); }
  /// A new tensor with these elements, in row-major order. Throws ShapeError if their number is not shape.size().
  static Tensor of(const Shape& shape, std::span<const real> values);
  static Tensor of(const Shape& shape, std::initializer_list<real> values) {
    return of(shape, std::span<const real>(values.begin(), values.size()));
  }

  bool defined() const { return block_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Index size() const { return shape_.size(); }
  Index rows() const { return shape_.rows(); }
  Index cols() const { return shape_.cols(); }

  const real* data() const { return data_; }
  real* data() { return data_; }
  std::span<const real> values() const { return {data_, static_cast<std::size_t>(size())}; }
  std::span<real> values() { return {data_, static_cast<std::size_t>(size())}; }
  /// The value of a tensor of one element. Throws ShapeError otherwise.
  real item() const;

  /// The same elements under another shape of equal size. Throws ShapeError if the sizes differ.
  Tensor reshaped(const Shape& shape) const;
  /// Rows [begin, end) along the first dimension, sharing the elements. Throws ShapeError outside of the tensor.
  Tensor row_range(Index begin, Index end) const;
  /// `shape.size()` elements from element `offset` on, sharing them. Throws ShapeError outside of the tensor.
  Tensor view(Index offset, const Shape& shape) const;
  /// A new tensor with the same elements.
  Tensor clone() const;
  /// Whether no other tensor shares the elements.
  bool unique() const;

 private:
  std::atomic<int>* block_ = nullptr;  // the reference count, at the start of the pool's block
  real* data_ = nullptr;
  Shape shape_;
};

}  // namespace weft

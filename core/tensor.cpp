#include "weft/core/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

#include "weft/core/error.h"
#include "weft/core/memory.h"

namespace weft {
namespace {

constexpr std::size_t kCountBytes = 64;  // the reference count stands in a cache line of its own

}  // namespace

Shape::Shape(std::initializer_list<Index> lengths) {
  if (lengths.size() > kMaxRank) {
    throw ShapeError(fmt::format("[shape] {} dimensions; a tensor has at most {}", lengths.size(), kMaxRank));
  }
  for (const Index length : lengths) {
    if (length < 0)
      throw ShapeError(fmt::format("[shape] length {} of dimension {}; must be at least 0", length, rank_));
    lengths_[static_cast<std::size_t>(rank_++)] = length;
  }
  Index product = 1;
  for (const Index length : lengths) {
    if (length > 0 && product > std::numeric_limits<Index>::max() / static_cast<Index>(sizeof(real)) / length) {
      throw ShapeError(fmt::format("[shape] {} has more elements than any memory holds", to_string(*this)));
    }
    product *= length;
  }
}

Index Shape::rows() const {
  Index product = 1;
  for (int d = 0; d + 1 < rank_; ++d) product *= (*this)[d];
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.rank(); ++d) text += fmt::format("{}{}", d == 0 ? "" : ", ", shape[d]);
  return text + "]";
}

Tensor::Tensor(const Shape& shape) : shape_(shape) {
  void* block = pool_allocate(kCountBytes + static_cast<std::size_t>(shape.size()) * sizeof(real));
  block_ = new (block) std::atomic<int>(1);
  data_ = reinterpret_cast<real*>(static_cast<char*>(block) + kCountBytes);
}

Tensor::Tensor(const Tensor& other) noexcept : block_(other.block_), data_(other.data_), shape_(other.shape_) {
  if (block_ != nullptr) block_->fetch_add(1, std::memory_order_relaxed);
}

Tensor::Tensor(Tensor&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      shape_(std::exchange(other.shape_, Shape())) {}

Tensor& Tensor::operator=(Tensor other) noexcept {
  std::swap(block_, other.block_);
  std::swap(data_, other.data_);
  std::swap(shape_, other.shape_);
  return *this;
}

Tensor::~Tensor() {
  if (block_ != nullptr && block_->fetch_sub(1, std::memory_order_acq_rel) == 1) pool_free(block_);
}

Tensor Tensor::full(const Shape& shape, real value) {
  Tensor tensor(shape);
  std::fill_n(tensor.data(), tensor.size(), value);
  return tensor;
}

Tensor Tensor::of(const Shape& shape, std::span<const real> values) {
  if (static_cast<Index>(values.size()) != shape.size()) {
    throw ShapeError(
        fmt::format("[tensor] {} values for shape {}, which has {}", values.size(), to_string(shape), shape.size()));
  }
  Tensor tensor(shape);
  std::copy(values.begin(), values.end(), tensor.data());
  return tensor;
}

real Tensor::item() const {
  if (!defined() || size() != 1) {
    throw ShapeError(fmt::format("[item] shape {}; must have one element", to_string(shape_)));
  }
  return *data_;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.size() != size()) {
    throw ShapeError(fmt::format("[reshape] {} has {} elements, {} has {}; the numbers must be equal",
                                 to_string(shape_), size(), to_string(shape), shape.size()));
  }
  Tensor tensor = *this;
  tensor.shape_ = shape;
  return tensor;
}

Tensor Tensor::row_range(Index begin, Index end) const {
  if (shape_.rank() == 0 || begin < 0 || end < begin || end > shape_[0]) {
    throw ShapeError(fmt::format("[rows] range {} to {} of {}; must lie inside", begin, end, to_string(shape_)));
  }
  Shape shape;
  const Index count = end - begin;
  switch (shape_.rank()) {
    case 1:
      shape = {count};
      break;
    case 2:
      shape = {count, shape_[1]};
      break;
    case 3:
      shape = {count, shape_[1], shape_[2]};
      break;
    default:
      shape = {count, shape_[1], shape_[2], shape_[3]};
  }
  return view(shape_[0] == 0 ? 0 : begin * (size() / shape_[0]), shape);
}

Tensor Tensor::view(Index offset, const Shape& shape) const {
  if (offset < 0 || offset + shape.size() > size()) {
    throw ShapeError(fmt::format("[view] elements {} to {} of {}, which has {}", offset, offset + shape.size(),
                                 to_string(shape_), size()));
  }
  Tensor tensor = *this;
  tensor.data_ += offset;
  tensor.shape_ = shape;
  return tensor;
}

Tensor Tensor::clone() const { return of(shape_, values()); }

bool Tensor::unique() const { return block_ != nullptr && block_->load(std::memory_order_acquire) == 1; }

}  // namespace weft

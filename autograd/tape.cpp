#include "weft/autograd/tape.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/core/error.h"

namespace weft {

Var Tape::watch(Leaf& leaf) {
  const Slot slot = new_slot(leaf.value.shape(), &leaf);
  if (detector_ != nullptr) detector_->watched(leaf);
  return Var(leaf.value, this, slot);
}

Var Tape::variable(Tensor value) {
  const Slot slot = new_slot(value.shape(), nullptr, true);
  return Var(std::move(value), this, slot);
}

Slot Tape::new_slot(const Shape& shape, Leaf* leaf, bool kept) {
  if (finished_) clear();
  if (detector_ != nullptr && gradients_.empty()) detector_->begin();
  gradients_.push_back({shape, Tensor(), leaf, kept});
  return {static_cast<int>(gradients_.size()) - 1};
}

void* Tape::allocate(std::size_t bytes) {
  constexpr std::size_t kChunk = 64 * 1024;
  if (finished_) clear();
  bytes = (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const std::size_t size = std::max(bytes, kChunk);
    chunks_.push_back({std::make_unique<std::byte[]>(size), size});
    used_ = 0;
  }
  void* place = chunks_[chunk_].bytes.get() + used_;
  used_ += bytes;
  return place;
}

void Tape::backward(const Var& loss) {
  if (!holds(loss) || loss.value().size() != 1) {
    throw ShapeError(
        fmt::format("[backward] loss {} must be one element recorded on this tape", to_string(loss.shape())));
  }
  give(loss.slot(), Tensor::full(loss.shape(), 1));
  written_.clear();
  if (profile_ != nullptr) profile_->start();
  while (!records_.empty()) {
    const Record record = records_.back();
    records_.pop_back();
    at_work_ = record.name;
    const Tensor gradient = std::move(at(record.output).tensor);  // leaves none behind
    try {
      if (gradient.defined()) record.run(record.closure, gradient, *this);
      if (profile_ != nullptr) profile_->backward(record.name, at(record.output).shape);
      if (detector_ != nullptr) show_gradients(record);
    } catch (...) {
      record.destroy(record.closure);
      throw;
    }
    record.destroy(record.closure);
  }
  at_work_ = {};
  finished_ = true;
}

void Tape::show_gradients(const Record& record) {
  for (const Slot slot : written_) {
    const Gradient& gradient = at(slot);
    detector_->backward(record.name, static_cast<Index>(records_.size()) + 1, at(record.output).shape,
                        gradient.leaf != nullptr ? gradient.leaf->gradient : gradient.tensor, gradient.leaf);
  }
  written_.clear();
}

Dst Tape::sink(Slot slot) {
  if (!slot) return {};
  if (detector_ != nullptr) written_.push_back(slot);
  Gradient& gradient = at(slot);
  if (gradient.leaf != nullptr) {
    const real beta = gradient.leaf->written ? 1 : 0;
    gradient.leaf->written = true;
    return {gradient.leaf->gradient.data(), beta};
  }
  if (!gradient.tensor.defined()) {
    gradient.tensor = Tensor(gradient.shape);
    return {gradient.tensor.data(), 0};
  }
  if (!gradient.tensor.unique()) gradient.tensor = gradient.tensor.clone();  // somebody was given the same elements
  return {gradient.tensor.data(), 1};
}

void Tape::give(Slot slot, const Tensor& gradient) {
  if (!slot) return;
  Gradient& target = at(slot);
  if (!gradient.defined() || gradient.size() != target.shape.size()) {
    throw ShapeError(fmt::format("[{}] its backward gives {} as gradient of an argument {}; the sizes must be equal",
                                 at_work_, gradient.defined() ? to_string(gradient.shape()) : "nothing",
                                 to_string(target.shape)));
  }
  if (target.leaf == nullptr && !target.tensor.defined()) {
    target.tensor = gradient.reshaped(target.shape);
    if (detector_ != nullptr) written_.push_back(slot);
  } else {
    accumulate(gradient.size(), gradient.data(), sink(slot));
  }
}

Tensor Tape::gradient(const Var& variable) const {
  if (!holds(variable)) throw ShapeError("[gradient] the variable is not on this tape");
  const Gradient& gradient = gradients_[static_cast<std::size_t>(variable.slot().index)];
  if (!gradient.kept) throw ShapeError("[gradient] only a variable() keeps its gradient on the tape");
  return gradient.tensor.defined() ? gradient.tensor : Tensor::zeros(gradient.shape);
}

void Tape::clear() {
  while (!records_.empty()) {
    records_.back().destroy(records_.back().closure);
    records_.pop_back();
  }
  gradients_.clear();
  at_work_ = {};
  chunk_ = 0;
  used_ = 0;
  finished_ = false;
}

std::vector<std::string_view> Tape::operations() const {
  std::vector<std::string_view> names;
  names.reserve(records_.size());
  for (const Record& record : records_) names.push_back(record.name);
  return names;
}

}  // namespace weft

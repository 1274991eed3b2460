// A layer on its own, outside of any model: made by its name, fed with batches of random rows, run forward and backward.
// For checks and timings of layers; the same layer, seed and batch always give the same bits.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/nn/module.h"
#include "weft/nn/registry.h"

namespace weft {

/// Rows for a layer, and the encoder's output for those layers that see it.
struct LayerBatch {
  Tensor x;  ///< [rows, d_model]
  Ragged rows;
  Tensor memory;  ///< [memory rows, d_model]
  Ragged memory_rows;
};

/// A tensor of values from [-scale, scale), a function of the shape and the seed alone.
Tensor random_rows(const Shape& shape, std::uint64_t seed, double scale = 1);

/// A batch of random rows with sentences of these lengths; both lists are equally long.
LayerBatch random_batch(Index d_model, const std::vector<Index>& lengths, const std::vector<Index>& memory_lengths,
                        std::uint64_t seed, double scale = 1);

/// Batches of single sentences put together, in some order; any of them any number of times.
LayerBatch together(const std::vector<LayerBatch>& sentences, const std::vector<std::size_t>& order);

/// What a pass forward and backward gave.
struct LayerPass {
  Tensor result;
  std::vector<Tensor> gradients;  ///< of x, of memory if the layer sees it, of all parameters in one
  double forward_seconds = 0, backward_seconds = 0;
};

/// The values of what a layer is given, to see that it leaves them alone.
class Unchanged {
 public:
  /// Of nothing, if `given` is not defined.
  Unchanged(const char* what, const Tensor& given);

  /// Throws Error, in which `what` is named, unless the values have the same bytes as in the beginning.
  void require() const;

 private:
  const char* what_;
  Tensor given_, before_;
};

/// A layer with parameters of its own, all moved off their beginning so that zeros and ones cannot hide a mistake.
class LayerTrial {
 public:
  /// A layer under the name `place`, of five letters, in its model. Throws what Registry::make_layer does.
  LayerTrial(const Registry& registry, std::string_view slot, std::string_view name, LayerOptions options,
             std::uint64_t seed = 1, std::string_view place = "layer");

  /// Whether the layer also sees the encoder's output.
  bool crosses() const { return cross_ != nullptr; }
  bool incremental() const { return crosses() ? cross_->incremental() : layer_->incremental(); }
  ParameterSet& parameters() { return parameters_; }
  /// The name of the layer's member that a parameter is: its key in a checkpoint without the place of the layer.
  static std::string_view member(std::string_view parameter);

  /// To see that the parameters are the same after some passes.
  Unchanged parameters_unchanged() const { return {"a parameter", values_}; }

  /// The layer's result. Throws ShapeError unless it has the shape of x, Error if the layer writes into x or memory; of
  /// a batch also if it writes into its parameters.
  Var operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const;
  Tensor operator()(const Context& context, const LayerBatch& batch) const;
  /// Forward on a tape, and backward from `gradient` of the result, which has its shape. With the pass done last as
  /// `before`, all gradients are added to those of it, as where x is used a second time and parameters in two batches.
  /// `between` is called after the way forward. Throws Error also if the layer writes into its parameters,
  /// `gradient` or, backward, its result.
  LayerPass pass(const LayerBatch& batch, const Tensor& gradient, bool training, const RandomStream& random = {},
                 const LayerPass* before = nullptr, const std::function<void()>& between = {});

 private:
  Var run(const Context& context, const Var& x, const Ragged& rows, const Var& memory, const Ragged& memory_rows) const;

  ParameterSet parameters_;
  Tensor values_;  // of the parameters
  Module root_;
  std::unique_ptr<Layer> layer_;
  std::unique_ptr<CrossLayer> cross_;
  Tape tape_;
};

}  // namespace weft

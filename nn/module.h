// The model tree. A module is a named node, made in place and never copied or moved; its parameters and sublayers are its
// members, and declaring a member registers it. Names are the state-dict keys of checkpoints.
#pragma once

#include <string>
#include <string_view>

#include "weft/core/ragged.h"
#include "weft/nn/context.h"
#include "weft/nn/parameters.h"

namespace weft {

/// A node of the model tree.
class Module {
 public:
  /// The root: its members' names have no prefix.
  explicit Module(ParameterSet& parameters) : parameters_(parameters) {}
  /// A node `name` below `parent`.
  Module(Module& parent, std::string_view name) : parameters_(parent.parameters_), name_(parent.key(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// The dotted name of this node; empty for the root.
  const std::string& name() const { return name_; }
  /// The dotted name of a member of this node.
  std::string key(std::string_view member) const {
    return name_.empty() ? std::string(member) : name_ + "." + std::string(member);
  }
  ParameterSet& parameters() const { return parameters_; }

 private:
  ParameterSet& parameters_;
  std::string name_;
};

/// A learned tensor of a module.
class Parameter {
 public:
  Parameter(Module& owner, std::string_view name, const Shape& shape, const Init& init)
      : parameters_(owner.parameters()), leaf_(parameters_.declare({{owner.key(name), shape, init, 0}})) {}

  /// The tensor as a variable of this forward pass.
  Var operator()(const Context& context) const {
    parameters_.allocate();
    return context.tape != nullptr ? context.tape->watch(leaf_) : Var(leaf_.value);
  }

 private:
  ParameterSet& parameters_;
  Leaf& leaf_;
};

/// A layer that a config can fill in by name (see Registry): rows in, rows of the same shape out.
class Layer : public Module {
 public:
  using Module::Module;
  /// x and result [rows, d_model]; `rows` says which rows belong to which sequence.
  virtual Var operator()(const Context& context, const Var& x, const Ragged& rows) const = 0;
  /// Whether the layer can go forward by single positions, with Context::decoding: true if each row depends on no other
  /// row, or if the layer keeps its past there. A decoder with a layer that cannot is decoded by running whole prefixes.
  virtual bool incremental() const { return false; }
};

/// A layer of the decoder that also sees the encoder's output.
class CrossLayer : public Module {
 public:
  using Module::Module;
  /// x and result [rows, d_model], memory [memory rows, d_model]; sequence i of x sees sequence i of memory.
  virtual Var operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                         const Ragged& memory_rows) const = 0;
  /// As Layer::incremental.
  virtual bool incremental() const { return false; }
};

}  // namespace weft

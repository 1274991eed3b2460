// What a layer must keep true to be part of a model, tried out on the layer alone: true gradients, results that do not
// depend on other sentences, threads, tape or chance, a past that equals the whole, parameters that survive a file. For
// `weft check layer` and for tests of layers. Every check is a function of the layer and its options: no clock, no chance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/nn/parameters.h"
#include "weft/nn/registry.h"

namespace weft {

/// What one check found.
struct LayerCheckRow {
  std::string check;   ///< "gradients"
  std::string result;  ///< with its figure: "worst error 4.7e-12 of 1e-06 allowed (double)"
  bool passed = false;
  std::string place;    ///< of a failure, where it was seen first; what was thrown, if anything
  std::string meaning;  ///< what a failure would lead to, and how to mend it, in a line
};

/// What all checks found of one layer.
struct LayerCheck {
  std::string slot, name;
  std::vector<ParameterEntry> parameters;  ///< names as members of the layer: "gate.weight"
  std::vector<LayerCheckRow> rows;

  /// Whether all rows passed.
  bool passed() const;
};

/// Options small enough to compare every element with finite differences, with all kinds of dropout.
LayerOptions small_layer_options();

/// Checks the layer `name` of a slot: gradients, batch composition, causality, decoding, threads, tape, save and load,
/// randomness, memory, odd input; in the encoder, in the decoder, or in both, wherever the slot is; in sentences of up to 70
/// rows, of odd input up to 2,048, and none longer than max_length. With large options gradients are compared in parts of
/// many elements. Takes up to 8 threads, and sets the number back. What the layer throws fails the check. Throws what
/// Registry::require does, std::bad_alloc or Error when memory is out, and Error or std::system_error when the
/// temporary file for save and load cannot be had.
LayerCheck check_layer(const Registry& registry, std::string_view slot, std::string_view name,
                       const LayerOptions& options = small_layer_options());

}  // namespace weft

// Names for layers, so that a config can choose them. A registry is a value filled in main(), not a global.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/nn/module.h"

namespace weft {

class Registry;

/// What a layer may need to know when it is made.
struct LayerOptions {
  Index d_model = 128;
  Index heads = 4;
  Index d_feed_forward = 512;
  Index max_length = 512;       ///< the longest sequence
  real dropout = 0;             ///< on what a sublayer adds to the residual stream
  real attention_dropout = 0;   ///< on attention weights
  real activation_dropout = 0;  ///< within the feed-forward layer
  Activation activation = Activation::kRelu;
  bool norm_first = false;  ///< pre-norm instead of post-norm
  bool causal = false;      ///< whether a position must not see later ones: true in the decoder
  // The names chosen for each slot, and where they are looked up.
  std::string feed_forward = "default", norm = "layer_norm", self_attention = "multi_head",
              cross_attention = "multi_head";
  const Registry* registry = nullptr;
};

/// Layers by slot and name. Slots for a Layer: feed_forward, norm, positions, self_attention, encoder_layer; for a
/// CrossLayer: cross_attention, decoder_layer.
class Registry {
 public:
  /// Adds layer type L, which is constructible from (Module& parent, std::string_view name, const LayerOptions&). Throws
  /// ConfigError for an unknown slot, a slot of the other kind, or a name that is taken.
  template <class L>
  void add(std::string_view slot, std::string_view name) {
    if constexpr (std::is_base_of_v<Layer, L>) {
      add_layer(slot, name, [](Module& parent, std::string_view member, const LayerOptions& options) {
        return std::unique_ptr<Layer>(std::make_unique<L>(parent, member, options));
      });
    } else {
      static_assert(std::is_base_of_v<CrossLayer, L>, "a registered layer is a Layer or a CrossLayer");
      add_cross_layer(slot, name, [](Module& parent, std::string_view member, const LayerOptions& options) {
        return std::unique_ptr<CrossLayer>(std::make_unique<L>(parent, member, options));
      });
    }
  }

  /// Makes the layer chosen for a slot as member `member` of `parent`. Throws ConfigError for an unknown name, listing the
  /// known ones.
  std::unique_ptr<Layer> make_layer(std::string_view slot, std::string_view name, Module& parent,
                                    std::string_view member, const LayerOptions& options) const;
  std::unique_ptr<CrossLayer> make_cross_layer(std::string_view slot, std::string_view name, Module& parent,
                                               std::string_view member, const LayerOptions& options) const;

  /// Throws ConfigError, as above, unless the slot has the name.
  void require(std::string_view slot, std::string_view name) const;
  /// The names of a slot, sorted.
  std::vector<std::string> names(std::string_view slot) const;
  /// All slots, those for a Layer first.
  static std::vector<std::string> slots();
  /// Whether a slot is for a CrossLayer.
  static bool takes_cross_layer(std::string_view slot);

 private:
  using LayerFactory = std::function<std::unique_ptr<Layer>(Module&, std::string_view, const LayerOptions&)>;
  using CrossLayerFactory = std::function<std::unique_ptr<CrossLayer>(Module&, std::string_view, const LayerOptions&)>;
  template <class Factory>
  using Table = std::map<std::string, std::map<std::string, Factory, std::less<>>, std::less<>>;

  void add_layer(std::string_view slot, std::string_view name, LayerFactory factory);
  void add_cross_layer(std::string_view slot, std::string_view name, CrossLayerFactory factory);

  Table<LayerFactory> layers_;
  Table<CrossLayerFactory> cross_layers_;
};

/// The layers that come with Weft, under their names in configs.
Registry standard_layers();

}  // namespace weft

#include "weft/nn/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/nn/attention.h"
#include "weft/nn/blocks.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 5> kLayerSlots{"feed_forward", "norm", "positions", "self_attention",
                                                      "encoder_layer"};
constexpr std::array<std::string_view, 2> kCrossLayerSlots{"cross_attention", "decoder_layer"};

template <class Slots, class Table, class Factory>
void add_to(const Slots& slots, Table& table, std::string_view slot, std::string_view name, Factory factory) {
  if (std::find(slots.begin(), slots.end(), slot) == slots.end()) {
    throw ConfigError(
        fmt::format("layer {}: no slot {} for this kind of layer; slots are {}", name, slot, fmt::join(slots, ", ")));
  }
  if (!table[std::string(slot)].emplace(std::string(name), std::move(factory)).second) {
    throw ConfigError(fmt::format("layer {}: the name is taken in slot {}", name, slot));
  }
}

template <class Table>
auto* find_in(const Table& table, std::string_view slot, std::string_view name) {
  const auto names = table.find(slot);
  if (names == table.end()) return static_cast<decltype(&names->second.begin()->second)>(nullptr);
  const auto factory = names->second.find(name);
  return factory == names->second.end() ? nullptr : &factory->second;
}

}  // namespace

void Registry::add_layer(std::string_view slot, std::string_view name, LayerFactory factory) {
  add_to(kLayerSlots, layers_, slot, name, std::move(factory));
}

void Registry::add_cross_layer(std::string_view slot, std::string_view name, CrossLayerFactory factory) {
  add_to(kCrossLayerSlots, cross_layers_, slot, name, std::move(factory));
}

std::vector<std::string> Registry::names(std::string_view slot) const {
  std::vector<std::string> names;
  if (const auto found = layers_.find(slot); found != layers_.end()) {
    for (const auto& [name, factory] : found->second) names.push_back(name);
  }
  if (const auto found = cross_layers_.find(slot); found != cross_layers_.end()) {
    for (const auto& [name, factory] : found->second) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Registry::slots() {
  std::vector<std::string> slots;
  for (const std::string_view slot : kLayerSlots) slots.emplace_back(slot);
  for (const std::string_view slot : kCrossLayerSlots) slots.emplace_back(slot);
  return slots;
}

bool Registry::takes_cross_layer(std::string_view slot) {
  return std::find(kCrossLayerSlots.begin(), kCrossLayerSlots.end(), slot) != kCrossLayerSlots.end();
}

void Registry::require(std::string_view slot, std::string_view name) const {
  if (find_in(layers_, slot, name) != nullptr || find_in(cross_layers_, slot, name) != nullptr) return;
  throw ConfigError(fmt::format("model.{}: \"{}\" is not a layer that this program knows; it knows {}{}", slot, name,
                                fmt::join(names(slot), ", "), suggestion(name, names(slot))));
}

std::unique_ptr<Layer> Registry::make_layer(std::string_view slot, std::string_view name, Module& parent,
                                            std::string_view member, const LayerOptions& options) const {
  require(slot, name);
  return (*find_in(layers_, slot, name))(parent, member, options);
}

std::unique_ptr<CrossLayer> Registry::make_cross_layer(std::string_view slot, std::string_view name, Module& parent,
                                                       std::string_view member, const LayerOptions& options) const {
  require(slot, name);
  return (*find_in(cross_layers_, slot, name))(parent, member, options);
}

Registry standard_layers() {
  Registry registry;
  registry.add<FeedForward>("feed_forward", "default");
  registry.add<LayerNorm>("norm", "layer_norm");
  registry.add<SinusoidalPositions>("positions", "sinusoidal");
  registry.add<LearnedPositions>("positions", "learned");
  registry.add<MultiHeadSelfAttention>("self_attention", "multi_head");
  registry.add<MultiHeadCrossAttention>("cross_attention", "multi_head");
  registry.add<EncoderLayer>("encoder_layer", "default");
  registry.add<DecoderLayer>("decoder_layer", "default");
  return registry;
}

}  // namespace weft

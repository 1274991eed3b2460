// What the check of layers finds of a layer of a test.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "weft/nn/layer_check.h"

namespace weft {

using Names = std::vector<std::string>;

template <class L>
LayerCheck check_of(const char* slot) {
  Registry registry = standard_layers();
  registry.add<L>(slot, "mine");
  return check_layer(registry, slot, "mine");
}

/// The checks that failed.
inline Names failed(const LayerCheck& check) {
  Names names;
  for (const LayerCheckRow& row : check.rows) {
    CHECK_FALSE(row.result.empty());
    CHECK(row.passed == row.place.empty());
    if (!row.passed) names.push_back(row.check);
  }
  CHECK(check.passed() == names.empty());
  return names;
}

/// Where the first that failed did.
inline std::string place_of(const LayerCheck& check) {
  const auto row = std::find_if(check.rows.begin(), check.rows.end(), [](const auto& r) { return !r.passed; });
  return row == check.rows.end() ? "" : row->place;
}

}  // namespace weft

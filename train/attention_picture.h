// Cross-attention as a picture: which source words each target word looked at.
// The picture is one self-contained SVG file: no scripts, nothing loaded from elsewhere, and well-formed XML
// whatever bytes the words are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The cross-attention of one sentence pair in one layer.
struct AttentionMap {
  std::vector<std::string> source, target;
  std::vector<std::vector<float>> heads;  ///< each [target, source], row-major, weights 0 to 1
};

/// Draws the mean over the heads and then each head: source words along the top, target words down the left,
/// the darker the more weight. Pointing at a cell shows its two words and the weight. Throws ShapeError for
/// no words, no heads, or a head of another size than target times source.
std::string attention_svg(const AttentionMap& map, std::string_view title);

}  // namespace weft

#include "weft/train/batch_size.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft {
namespace {

/// Whether `middle` lies outside of the line from `first` to `last`, which has more target rows and fewer source rows.
bool is_corner(const BatchSize& first, const BatchSize& middle, const BatchSize& last) {
  const auto product = [](Index a, Index b) { return static_cast<double>(a) * static_cast<double>(b); };
  return product(first.source_rows - middle.source_rows, last.target_rows - first.target_rows) <
         product(first.source_rows - last.source_rows, middle.target_rows - first.target_rows);
}

}  // namespace

BatchSize size_of(const Corpus& corpus, std::span<const Index> sentences) {
  BatchSize size{static_cast<Index>(sentences.size()), 0, 0};
  for (const Index sentence : sentences) {
    size.source_rows += corpus.source.length(sentence) + 1;
    size.target_rows += corpus.target.length(sentence) + 1;
  }
  return size;
}

std::vector<BatchSize> outermost(std::vector<BatchSize> sizes) {
  const auto key = [](const BatchSize& size) { return std::tuple(size.source_rows, size.target_rows, size.sentences); };
  std::sort(sizes.begin(), sizes.end(), [&](const BatchSize& a, const BatchSize& b) { return key(a) > key(b); });
  std::vector<BatchSize> corners;
  for (const BatchSize& size : sizes) {
    if (!corners.empty() && size.target_rows <= corners.back().target_rows) continue;
    while (corners.size() > 1 && !is_corner(corners[corners.size() - 2], corners.back(), size)) corners.pop_back();
    corners.push_back(size);
  }
  return corners;
}

}  // namespace weft

// How large batches are, as far as memory goes.
#pragma once

#include <span>
#include <vector>

#include "weft/core/types.h"
#include "weft/data/corpus.h"

namespace weft {

/// The sentences and the rows of a batch.
struct BatchSize {
  Index sentences = 0, source_rows = 0, target_rows = 0;

  Index rows() const { return source_rows + target_rows; }
  bool operator==(const BatchSize&) const = default;
};

/// The size of a batch of these sentences.
BatchSize size_of(const Corpus& corpus, std::span<const Index> sentences);

/// Those of these sizes among which is the one that takes most, whatever a row of the source and one of the target take.
///
/// At each moment of a pass, what it holds grows with the rows of the source and with those of the target, at rates of
/// the moment. The most of all moments is therefore a convex function of both that falls nowhere, which is largest at a
/// corner of the convex hull on the side of more rows. Sizes come with falling source_rows and rising target_rows.
std::vector<BatchSize> outermost(std::vector<BatchSize> sizes);

}  // namespace weft

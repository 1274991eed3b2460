// Everything a forward pass may know beside its inputs. It is handed down from call to call; modules hold no such flags.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/autograd/tape.h"
#include "weft/core/random.h"

namespace weft {

class DecodeState;

/// The attention weights seen in a forward pass: the name of the attention module, and for each sequence of the batch a
/// tensor [heads, queries, keys].
using AttentionRecord = std::vector<std::pair<std::string, std::vector<Tensor>>>;

/// What a forward pass is told.
struct Context {
  Tape* tape = nullptr;                  ///< where operations are recorded; null for inference
  bool training = false;                 ///< whether dropout is on
  RandomStream random;                   ///< what dropout draws from
  AttentionRecord* attention = nullptr;  ///< where cross-attention puts its weights; null: nowhere
  DecodeState* decoding = nullptr;       ///< the past, when each row is one new position of a hypothesis; else null
};

}  // namespace weft

// What a decoder may write, apart from what the model thinks of it: how long, and no n-gram twice.
#pragma once

#include <span>
#include <vector>

#include "weft/core/types.h"
#include "weft/train/search.h"

namespace weft {

/// The most tokens of a result for a source of so many tokens, </s> not counted on either side, by models that hold
/// `model_length` tokens.
Index length_limit(Index source_length, Index model_length, const SearchOptions& options);

/// The tokens, rising, that would end an n-gram which `written` holds already; none if n is 0.
std::vector<TokenId> repeating_tokens(std::span<const TokenId> written, Index n);

}  // namespace weft

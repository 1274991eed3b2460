#include "weft/train/decode_rules.h"

#include <algorithm>

namespace weft {

Index length_limit(Index source_length, Index model_length, const SearchOptions& options) {
  const Index wanted = options.max_length > 0
                           ? options.max_length
                           : static_cast<Index>(options.max_length_ratio * static_cast<double>(source_length)) +
                                 options.max_length_extra;
  return std::min(wanted, model_length - 1);
}

std::vector<TokenId> repeating_tokens(std::span<const TokenId> written, Index n) {
  std::vector<TokenId> tokens;
  if (n < 1 || static_cast<Index>(written.size()) < n) return tokens;
  const auto before = static_cast<std::size_t>(n - 1);
  const auto last = written.last(before);
  for (std::size_t end = before; end < written.size(); ++end) {
    const auto earlier = written.subspan(end - before, before);
    if (std::equal(earlier.begin(), earlier.end(), last.begin())) tokens.push_back(written[end]);
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace weft

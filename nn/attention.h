// Multi-head attention with its projections. Vaswani et al. 2017, section 3.2.2.
#pragma once

#include "weft/nn/layers.h"

namespace weft {

/// output(self_attention([query(x) | key(x) | value(x)])), causal where the options say so.
class MultiHeadSelfAttention : public Layer {
 public:
  MultiHeadSelfAttention(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows) const override;
  bool incremental() const override { return true; }

 private:
  Index heads_;
  bool causal_;
  LinearGroup query_key_value_;
  Linear output_;
  Dropout dropout_;
};

/// output(cross_attention(query(x), [key(memory) | value(memory)])). While decoding, keys and values are computed once for
/// each sentence.
class MultiHeadCrossAttention : public CrossLayer {
 public:
  MultiHeadCrossAttention(Module& parent, std::string_view name, const LayerOptions& options);
  Var operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                 const Ragged& memory_rows) const override;
  bool incremental() const override { return true; }

 private:
  Index heads_;
  Linear query_;
  LinearGroup key_value_;
  Linear output_;
  Dropout dropout_;
};

}  // namespace weft

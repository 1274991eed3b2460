#include "weft/nn/attention.h"

#include "weft/nn/decode_state.h"

namespace weft {
namespace {

/// Attention of one new row of each hypothesis, qkv [rows, 3 d_model], over its past and itself.
Var attend_to_past(DecodeState& state, const Module& owner, const Var& qkv, Index heads) {
  const Index rows = qkv.rows(), d_model = qkv.cols() / 3;
  Tensor key_value({rows, 2 * d_model}), result({rows, d_model});
  copy_block(rows, 2 * d_model, qkv.value().data() + d_model, qkv.cols(), {key_value.data(), 0}, 2 * d_model);
  const CachedOperands operands{qkv.value().data(), qkv.cols(), state.keep(owner, std::move(key_value)),
                                state.ancestors(),  heads,      d_model / heads};
  cached_attention(rows, operands, result.data());
  return result;
}

}  // namespace

MultiHeadSelfAttention::MultiHeadSelfAttention(Module& parent, std::string_view name, const LayerOptions& options)
    : Layer(parent, name),
      heads_(options.heads),
      causal_(options.causal),
      query_key_value_(*this, {"query", "key", "value"}, options.d_model, options.d_model),
      output_(*this, "output", options.d_model, options.d_model),
      dropout_(*this, "dropout", options.attention_dropout) {}

Var MultiHeadSelfAttention::operator()(const Context& context, const Var& x, const Ragged& rows) const {
  const Var qkv = query_key_value_(context, x);
  if (context.decoding != nullptr && causal_) {
    return output_(context, attend_to_past(*context.decoding, *this, qkv, heads_));
  }
  return output_(context, self_attention(qkv, rows, {heads_, causal_, dropout_.mask(context), nullptr}));
}

MultiHeadCrossAttention::MultiHeadCrossAttention(Module& parent, std::string_view name, const LayerOptions& options)
    : CrossLayer(parent, name),
      heads_(options.heads),
      query_(*this, "query", options.d_model, options.d_model),
      key_value_(*this, {"key", "value"}, options.d_model, options.d_model),
      output_(*this, "output", options.d_model, options.d_model),
      dropout_(*this, "dropout", options.attention_dropout) {}

Var MultiHeadCrossAttention::operator()(const Context& context, const Var& x, const Ragged& rows, const Var& memory,
                                        const Ragged& memory_rows) const {
  const Var query = query_(context, x);
  if (context.decoding != nullptr) {
    Tensor& key_value = context.decoding->projection(*this);
    if (!key_value.defined()) key_value = key_value_(context, memory).value();
    Tensor mixed(query.shape());
    memory_attention({query.value().data(), key_value.data(), context.decoding->rows_of_sentences().offsets(),
                      memory_rows.offsets(), heads_, query.cols() / heads_},
                     mixed.data());
    return output_(context, mixed);
  }
  std::vector<Tensor> weights;
  const AttentionOptions options{heads_, false, dropout_.mask(context),
                                 context.attention != nullptr ? &weights : nullptr};
  const Var mixed = cross_attention(query, key_value_(context, memory), rows, memory_rows, options);
  if (context.attention != nullptr) context.attention->emplace_back(name(), std::move(weights));
  return output_(context, mixed);
}

}  // namespace weft

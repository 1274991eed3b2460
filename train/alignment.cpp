#include "weft/train/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/data/vocabulary.h"

namespace weft {
namespace {

/// Throws ShapeError unless a layer has shown [heads, target rows, source rows] for each pair of the batch.
void require_weights(const std::string& layer, const std::vector<Tensor>& weights, const Batch& batch) {
  const Index pairs = batch.source_rows.sequences();
  if (static_cast<Index>(weights.size()) != pairs) {
    throw ShapeError(
        fmt::format("{}: shows the attention of {} sentences of {}; it must put one tensor for each into "
                    "Context::attention",
                    layer, weights.size(), pairs));
  }
  for (Index pair = 0; pair < pairs; ++pair) {
    const Tensor& shown = weights[static_cast<std::size_t>(pair)];
    const Index target = batch.target_rows.length(pair), source = batch.source_rows.length(pair);
    const Shape& shape = shown.shape();
    if (shown.defined() && shape.rank() == 3 && shape[0] > 0 && shape[1] == target && shape[2] == source) continue;
    throw ShapeError(
        fmt::format("{}: shows {} as the attention of a sentence; it must be [heads, {}, {}], the rows of "
                    "the target and of the source",
                    layer, shown.defined() ? to_string(shape) : "nothing", target, source));
  }
}

}  // namespace

std::vector<Tensor> cross_attention_weights(const Transformer& model, const Batch& batch) {
  AttentionRecord record;
  Context context;
  context.attention = &record;
  const Var memory = model.encode(context, batch.source, batch.source_rows);
  model.decode(context, batch.decoder_input, batch.target_rows, memory, batch.source_rows);
  if (record.empty()) throw ConfigError("no layer of this model shows its cross-attention");
  require_weights(record.back().first, record.back().second, batch);
  return std::move(record.back().second);
}

std::vector<Alignment> align(TransformerSpan models, const Batch& batch) {
  const auto pairs = static_cast<std::size_t>(batch.source_rows.sequences());
  std::vector<Alignment> alignments(pairs);
  for (std::size_t p = 0; p < pairs; ++p) {
    const auto pair = static_cast<Index>(p);
    alignments[p].source = batch.source_rows.length(pair) - 1;
    alignments[p].target = batch.target_rows.length(pair) - 1;
    alignments[p].weights.resize(
        static_cast<std::size_t>(batch.source_rows.length(pair) * batch.target_rows.length(pair)));
  }
  for (const Transformer* model : models) {
    const std::vector<Tensor> weights = cross_attention_weights(*model, batch);
    for (std::size_t p = 0; p < pairs; ++p) {
      std::vector<float>& sum = alignments[p].weights;
      const auto values = weights[p].values();
      const float share = 1 / static_cast<float>(weights[p].shape()[0] * static_cast<Index>(models.size()));
      for (std::size_t i = 0; i < values.size(); ++i) sum[i % sum.size()] += share * static_cast<float>(values[i]);
    }
  }
  return alignments;
}

std::vector<Index> best_sources(const Alignment& alignment) {
  std::vector<Index> best;
  for (Index j = 0; j < alignment.target; ++j) {
    const auto row = alignment.weights.begin() + j * (alignment.source + 1);
    best.push_back(std::max_element(row, row + alignment.source) - row);
  }
  return best;
}

std::string pharaoh(const Alignment& alignment) {
  std::string text;
  const std::vector<Index> best = best_sources(alignment);
  for (std::size_t j = 0; j < best.size(); ++j) text += fmt::format("{}{}-{}", j == 0 ? "" : " ", best[j], j);
  return text;
}

std::string alignment_json(Index line, std::span<const std::string> source, std::span<const std::string> target,
                           const Alignment& alignment) {
  using Json = nlohmann::ordered_json;
  Json json{{"line", line}, {"source", Json::array()}, {"target", Json::array()}, {"weights", Json::array()}};
  if (!alignment.weights.empty()) {
    for (const auto& [name, tokens] : {std::pair("source", source), std::pair("target", target)}) {
      for (const std::string& token : tokens) json[name].push_back(token);
      json[name].push_back(kSpecialTokens[kEnd]);
    }
    for (Index j = 0; j <= alignment.target; ++j) {
      Json row = Json::array();
      for (Index i = 0; i <= alignment.source; ++i) {
        row.push_back(std::round(1e6 * static_cast<double>(alignment.weight(j, i))) / 1e6);
      }
      json["weights"].push_back(std::move(row));
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string copied_token(const Tokenizer& tokenizer, const std::string& source) {
  const std::string text = tokenizer.join(std::vector<std::string>{source});
  std::vector<std::string> tokens = tokenizer.split(text);
  // A token that means something only beside others, such as n't, stays what it is.
  return tokens.size() == 1 ? std::move(tokens[0]) : source;
}

}  // namespace weft

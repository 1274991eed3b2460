#include "weft/train/model_ensemble.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "weft/core/error.h"
#include "weft/train/checkpoint.h"

namespace weft {
namespace {

/// Throws ConfigError for the first entry in which two vocabularies differ.
void require_same(const Vocabulary& a, const Vocabulary& b, const std::string& side, const std::string& first,
                  const std::string& second) {
  if (a.tokens() == b.tokens()) {
    if (a.content_hash() == b.content_hash()) return;
    throw ConfigError(fmt::format(
        "{} and {}: their {} subword models differ; use checkpoints trained with the same model", first, second, side));
  }
  const auto shorter = static_cast<std::size_t>(std::min(a.size(), b.size()));
  const auto difference = static_cast<std::size_t>(
      std::mismatch(a.tokens().begin(), a.tokens().begin() + static_cast<std::ptrdiff_t>(shorter), b.tokens().begin())
          .first -
      a.tokens().begin());
  const std::string what = difference < shorter ? fmt::format("token {} is \"{}\" and \"{}\"", difference,
                                                              a.tokens()[difference], b.tokens()[difference])
                                                : fmt::format("{} and {} tokens", a.size(), b.size());
  throw ConfigError(
      fmt::format("{} and {}: their {} vocabularies differ ({}); use checkpoints trained on the same text", first,
                  second, side, what));
}

}  // namespace

void naming_checkpoint(std::span<const std::string> paths, FunctionRef<void()> work) {
  try {
    work();
  } catch (const NotANumberError& error) {
    const bool one = paths.size() == 1 || error.model();
    throw Error(fmt::format("{}{}: {}; use one from before that, and see docs/divergence.md", one ? "" : "one of ",
                            one ? paths[error.model().value_or(0)] : fmt::format("{}", fmt::join(paths, ", ")),
                            error.what()));
  }
}

void require_same_tokens(ModelSpan models, std::span<const std::string> names) {
  for (std::size_t m = 1; m < models.size(); ++m) {
    const TranslationModel &a = *models[0], &b = *models[m];
    const DataConfig &x = a.config().data, &y = b.config().data;
    if (x.tokenizer != y.tokenizer || x.lowercase != y.lowercase) {
      throw ConfigError(fmt::format(
          "{} and {}: their tokenizers differ (\"{}\" with lowercase {}, \"{}\" with lowercase {}); use checkpoints "
          "trained with the same data.tokenizer and data.lowercase",
          names[0], names[m], x.tokenizer, x.lowercase, y.tokenizer, y.lowercase));
    }
    require_same(a.source_vocabulary(), b.source_vocabulary(), "source", names[0], names[m]);
    require_same(a.target_vocabulary(), b.target_vocabulary(), "target", names[0], names[m]);
  }
}

std::vector<const Transformer*> transformers(ModelSpan models) {
  std::vector<const Transformer*> result;
  for (const TranslationModel* model : models) result.push_back(&model->transformer());
  return result;
}

Index longest_sentence(ModelSpan models) { return max_length(transformers(models)) - 1; }

ModelEnsemble::ModelEnsemble(const std::vector<std::string>& paths, const Registry& registry) {
  if (paths.empty()) throw ConfigError("no checkpoint to load; name at least one");
  for (const std::string& path : paths) {
    models_.push_back(load_checkpoint(path, registry).model);
    pointers_.push_back(models_.back().get());
  }
  require_same_tokens(models(), paths);
}

}  // namespace weft

// Several checkpoints that work as one model: their probabilities are averaged. They read and write the same tokens.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/core/threads.h"
#include "weft/nn/registry.h"
#include "weft/train/ensemble_decoder.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Models that work together; at least one. The first one's tokenizer and configuration are used.
using ModelSpan = std::span<const TranslationModel* const>;

/// Calls `work` and has a NotANumberError that it throws name the checkpoint to blame, or all where it is not known.
void naming_checkpoint(std::span<const std::string> paths, FunctionRef<void()> work);

/// Throws ConfigError, with the first difference, unless all models have the same tokenizer and vocabularies. `names` are
/// what errors call them.
void require_same_tokens(ModelSpan models, std::span<const std::string> names);

/// The models' Transformers.
std::vector<const Transformer*> transformers(ModelSpan models);

/// The most tokens that a sentence may have in all models, not counting <s> and </s>.
Index longest_sentence(ModelSpan models);

/// Loaded checkpoints.
class ModelEnsemble {
 public:
  /// Throws ConfigError for no path or for models that do not go together, CheckpointError as load_checkpoint does.
  ModelEnsemble(const std::vector<std::string>& paths, const Registry& registry);

  ModelSpan models() const { return pointers_; }
  const TranslationModel& first() const { return *pointers_.front(); }

 private:
  std::vector<std::unique_ptr<TranslationModel>> models_;
  std::vector<const TranslationModel*> pointers_;
};

}  // namespace weft

#include "weft/train/translation_model.h"

namespace weft {
namespace {

TransformerOptions with_vocabularies(TransformerOptions options, const Vocabulary& source, const Vocabulary& target) {
  options.source_vocabulary = source.size();
  options.target_vocabulary = target.size();
  return options;
}

}  // namespace

TranslationModel::TranslationModel(Config config, Vocabulary source, Vocabulary target, const Registry& registry)
    : config_(std::move(config)),
      source_(std::move(source)),
      target_(std::move(target)),
      source_tokenizer_(make_tokenizer(config_.data.tokenizer, config_.data.lowercase, source_.subwords())),
      target_tokenizer_(make_tokenizer(config_.data.tokenizer, config_.data.lowercase, target_.subwords())),
      parameters_(static_cast<std::uint64_t>(config_.training.seed)),
      transformer_(parameters_, with_vocabularies(config_.model, source_, target_), registry) {}

}  // namespace weft

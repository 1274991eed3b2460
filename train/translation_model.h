// A Transformer together with all it needs to read and write text.
#pragma once

#include <memory>
#include <string>

#include "weft/data/tokenizer.h"
#include "weft/data/vocabulary.h"
#include "weft/nn/transformer.h"
#include "weft/train/config.h"

namespace weft {

/// A model that translates text: configuration, tokenizers, vocabularies, parameters.
class TranslationModel {
 public:
  /// A new model. Its parameters are made as config.training.seed says when they are first used, or by
  /// parameters().allocate(), which is to come before several threads share the model. Throws ConfigError for an impossible
  /// shape, an unknown layer name, or a vocabulary that does not fit the tokenizer.
  TranslationModel(Config config, Vocabulary source, Vocabulary target, const Registry& registry);

  const Config& config() const { return config_; }
  /// Changes what the configuration says of training, before any of it.
  void set_training(const TrainingConfig& training) { config_.training = training; }
  /// Not the same where each side has a subword model of its own.
  const Tokenizer& source_tokenizer() const { return *source_tokenizer_; }
  const Tokenizer& target_tokenizer() const { return *target_tokenizer_; }
  const Vocabulary& source_vocabulary() const { return source_; }
  const Vocabulary& target_vocabulary() const { return target_; }
  ParameterSet& parameters() { return parameters_; }
  const Transformer& transformer() const { return transformer_; }
  /// The most tokens that a sentence may have, not counting <s> and </s>.
  Index longest_sentence() const { return config_.model.max_length - 1; }

 private:
  Config config_;
  Vocabulary source_, target_;
  std::unique_ptr<Tokenizer> source_tokenizer_, target_tokenizer_;
  ParameterSet parameters_;
  Transformer transformer_;
};

}  // namespace weft

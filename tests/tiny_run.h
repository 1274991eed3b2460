// A model small enough to train in a test: it copies rows of a few letters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/nn/registry.h"
#include "weft/train/run_data.h"
#include "weft/train/trainer.h"

namespace weft {

/// The configuration of the tests, changed by overrides such as "training.steps=5".
inline Config tiny_config(const std::vector<std::string>& overrides = {}) {
  return parse_config(R"({
    "data": {"max_length": 9},
    "model": {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 32,
              "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1, "max_length": 10},
    "optimizer": {"learning_rate": 0.01},
    "schedule": {"warmup_steps": 10},
    "training": {"steps": 20, "batch_tokens": 100, "validate_every": 8, "log_every": 5, "samples": 0}
  })",
                      "tiny", overrides);
}

/// Pairs of equal rows of `shortest` to `longest` letters from a to f.
inline ParallelText letters(Index pairs, std::uint64_t seed, std::uint64_t shortest = 1, std::uint64_t longest = 6) {
  ParallelText text;
  Random random(seed);
  for (Index i = 0; i < pairs; ++i) {
    std::string line;
    for (std::uint64_t n = shortest + random.below(longest - shortest + 1); n > 0; --n) {
      line += line.empty() ? "" : " ";
      line += static_cast<char>('a' + random.below(6));
    }
    text.source.push_back(line);
    text.target.push_back(line);
  }
  return text;
}

/// A new model with a vocabulary of all letters.
inline std::unique_ptr<TranslationModel> tiny_model(const Config& config,
                                                    const Registry& registry = standard_layers()) {
  Vocabularies vocabularies = build_vocabularies(config.data, letters(100, 1));
  return std::make_unique<TranslationModel>(config, std::move(vocabularies.source), std::move(vocabularies.target),
                                            registry);
}

inline TrainingData tiny_data(const TranslationModel& model, const ParallelText& train, const ParallelText& valid) {
  const Index longest = model.config().data.max_length;
  return {encode_text(model, train, longest, "train").corpus, encode_text(model, valid, longest, "valid").corpus,
          valid};
}

}  // namespace weft

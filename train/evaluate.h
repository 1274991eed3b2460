// How good a model is on a parallel text: the loss under teacher forcing, and scores of its translations.
#pragma once

#include <string>
#include <vector>

#include "weft/data/corpus.h"
#include "weft/data/parallel_text.h"
#include "weft/train/search.h"
#include "weft/train/translation_model.h"

namespace weft {

/// Teacher-forced results over all target tokens, </s> included, without label smoothing and dropout.
struct LossResult {
  double loss = 0;            ///< cross-entropy per token, in nats
  double perplexity = 0;      ///< e^loss
  double token_accuracy = 0;  ///< share of tokens that had the highest probability
  Index tokens = 0;
};

/// Scores of translations.
struct TranslationResult {
  double exact_match = 0;  ///< share of lines equal to their reference
  double bleu = 0;         ///< 0 to 100; see corpus_bleu
  std::vector<std::string> translations;
};

/// Runs the model over a corpus without recording, in batches of `batch_tokens`.
LossResult evaluate_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens);

/// Translates text.source and compares with text.target.
TranslationResult evaluate_translations(const TranslationModel& model, const ParallelText& text,
                                        const SearchOptions& options, Index batch_tokens);

}  // namespace weft

#include "weft/train/evaluate.h"

#include <cmath>

#include "weft/data/batch.h"
#include "weft/train/bleu.h"
#include "weft/train/translate.h"

namespace weft {

LossResult evaluate_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens) {
  TokenStatistics statistics;
  LossResult result;
  for (const auto& sentences : batches_by_length(corpus, batch_tokens)) {
    const Batch batch = make_batch(corpus, sentences);
    model.transformer().loss(Context{},
                             {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
                             {0, 1, &statistics});
    result.tokens += batch.target_rows.rows();
  }
  result.loss = statistics.negative_log_likelihood / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.token_accuracy = static_cast<double>(statistics.correct) / static_cast<double>(result.tokens);
  return result;
}

TranslationResult evaluate_translations(const TranslationModel& model, const ParallelText& text,
                                        const SearchOptions& options, Index batch_tokens) {
  TranslationResult result;
  for (TranslatedLine& line : translate(model, text.source, options, batch_tokens)) {
    result.translations.push_back(std::move(line.translations.front().text));
  }
  result.exact_match = exact_match(result.translations, text.target);
  result.bleu = corpus_bleu(result.translations, std::vector<std::vector<std::string>>{text.target}).score;
  return result;
}

}  // namespace weft

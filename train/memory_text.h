// What the training text of a run takes in memory, tensors aside.
#pragma once

#include "weft/data/corpus.h"
#include "weft/train/translation_model.h"

namespace weft {

/// What a text takes as ids.
Index corpus_bytes(const Corpus& corpus);

/// What the training text takes for as long as the run: its ids and, with data.subword_sampling, its lines, about.
Index held_text_bytes(const TranslationModel& model, const Corpus& train);

/// What is made of the training text for an epoch, beside it, in a run of so many `tokens` in batches of `batch_tokens`: its
/// plan, and with data.subword_sampling all of its tokens, about, as a sample of its pairs gives them. There are several
/// epochs of these at a time: two while one is drawn, and all that the batches of one update are from.
Index text_bytes(const TranslationModel& model, const Corpus& train, double tokens, Index batch_tokens);

}  // namespace weft

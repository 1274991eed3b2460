#include "weft/train/memory_forecast.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "weft/core/memory.h"
#include "weft/core/out_of_memory.h"
#include "weft/optim/optimizer.h"
#include "weft/train/decode_rules.h"
#include "weft/train/drawn_sample.h"
#include "weft/train/ensemble_decoder.h"
#include "weft/train/search.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

/// The share of what the pool may keep at most that it does keep in a long run, whose batches are of many shapes, and how
/// often what the work takes it may keep, in blocks of one shape after another. Measured: see tests/torture/memory.
constexpr double kKept = 0.8, kKeptOfWork = 1.5;

Index bytes_of(double bytes) { return static_cast<Index>(std::ceil(std::max(bytes, 0.0))); }

/// Rows cut into equal sequences.
Ragged equal_parts(Index rows, Index sequences) {
  Ragged ragged;
  for (Index i = 0; i < sequences; ++i) ragged.append(rows * (i + 1) / sequences - rows * i / sequences);
  return ragged;
}

std::vector<TokenId> any_tokens(Index count) { return std::vector<TokenId>(static_cast<std::size_t>(count), kEnd); }

Batch made_up_batch(const BatchSize& size) {
  Batch batch;
  batch.source = any_tokens(size.source_rows);
  batch.decoder_input = batch.target = any_tokens(size.target_rows);
  batch.source_rows = equal_parts(size.source_rows, size.sentences);
  batch.target_rows = equal_parts(size.target_rows, size.sentences);
  return batch;
}

void append_sizes(const Corpus& corpus, const std::vector<std::vector<Index>>& batches, std::vector<BatchSize>& sizes) {
  for (const auto& sentences : batches) sizes.push_back(size_of(corpus, sentences));
}

/// What the pool keeps beside so many bytes of tensors.
double kept_beside(double tensors) {
  return kKept * (static_cast<double>(most_reserved(static_cast<Index>(tensors))) - tensors);
}

/// The sources that are translated at validations. Those that the corpus lacks, for their targets may be too long for
/// the model, or their own ends, are encoded as far as they go.
EncodedText translated(const TranslationModel& model, const Corpus& valid, std::span<const std::string> lines) {
  EncodedText text;
  Index pair = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (pair < valid.size() && valid.line[static_cast<std::size_t>(pair)] == static_cast<Index>(i)) {
      text.append(valid.source[pair++]);
      continue;
    }
    std::vector<TokenId> ids = model.source_vocabulary().ids(model.source_tokenizer().split(lines[i]));
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(model.longest_sentence())));
    text.append(ids);
  }
  return text;
}

/// As many tokens as a run trains on at most, in batches of `batch_tokens`.
double most_tokens(const TrainingConfig& training, Index batch_tokens) {
  if (training.minutes > 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(training.steps) * static_cast<double>(training.accumulate) *
         static_cast<double>(batch_tokens);
}

/// How many epochs are planned to look for the largest batch: those of the run, up to a number, of a large text to as many
/// as take about a second; at least one.
Index planned_epochs(const TrainingConfig& training, const Corpus& train, Index batch_tokens) {
  constexpr Index kEpochs = 16, kPairs = Index{2} << 20;
  const Index pairs = std::max<Index>(1, train.size());
  const auto rows = static_cast<double>(train.source.rows.rows() + train.target.rows.rows() + 2 * pairs);
  const auto most = static_cast<double>(std::clamp<Index>(kPairs / pairs, 1, kEpochs));
  return static_cast<Index>(std::clamp(std::ceil(most_tokens(training, batch_tokens) / rows), 1.0, most));
}

/// The options of a validation's search.
SearchOptions greedy_options(const DecodingConfig& decoding) {
  SearchOptions greedy = search_options(decoding);
  greedy.beam = 1;
  return greedy;
}

}  // namespace

ResidentMemory settled_memory() {
  release_unused_memory();
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
  return resident_memory();
}

TranslationBytes validation_bytes(const TranslationModel& model, const Corpus& valid,
                                  std::span<const std::string> references) {
  const Index most = model.config().training.validation_sentences;
  const Index pairs =
      most == 0 ? valid.size() : std::lower_bound(valid.line.begin(), valid.line.end(), most) - valid.line.begin();
  if (most > 0) references = references.first(std::min(references.size(), static_cast<std::size_t>(most)));
  return translation_bytes(model, valid, pairs, make_metrics(kUsualMetrics), greedy_options(model.config().decoding),
                           references);
}

Index MemoryForecast::to_come() const {
  const double all = static_cast<double>(state) + work(),
               kept = std::min(kept_beside(all), kept_beside(0) + kKeptOfWork * work());
  return text + validation.bytes() + bytes_of(all + kept) + 1 - held;  // one, as room_for_work() is rounded
}

double MemoryForecast::room_for_work(Index room) const {
  const auto all = static_cast<double>(room - text - validation.bytes() + held), fixed = static_cast<double>(state);
  // Each of the two lines, of which to_come() takes the less, the other way round.
  constexpr double kUnit = 1 << 30;
  const double least = kept_beside(0), rate = (kept_beside(kUnit) - least) / kUnit;
  return std::max({0.0, (all - least - fixed) / (1 + kKeptOfWork), (all - least) / (1 + rate) - fixed});
}

Index state_bytes(const TrainingConfig& training, const OptimizerConfig& optimizer, Index parameters) {
  const OptimizerOptions options{.name = optimizer.name, .momentum = optimizer.momentum};
  const auto buffers = 2 + static_cast<Index>(make_optimizer(options, 1)->state().size()) + (training.ema_decay > 0);
  return buffers * parameters * static_cast<Index>(sizeof(real));
}

std::vector<BatchSize> training_batches(const TranslationModel& model, const Corpus& train, Index batch_tokens) {
  const Config& config = model.config();
  const Index epochs = planned_epochs(config.training, train, batch_tokens);
  std::vector<BatchSize> sizes;
  const auto append_planned = [&](const Corpus& corpus) {
    constexpr std::size_t kAtOnce = 4096;  // of many small batches few are held
    const BatchPlan plan(corpus, batch_tokens, static_cast<std::uint64_t>(config.training.seed));
    for (Index epoch = 0; epoch < epochs; ++epoch) {
      plan.each_batch(epoch, [&](std::span<const Index> sentences) {
        sizes.push_back(size_of(corpus, sentences));
        if (sizes.size() % kAtOnce == 0) sizes = outermost(std::move(sizes));
      });
    }
  };
  append_planned(train);
  constexpr double kBatches = 4;
  if (config.data.subword_sampling > 0) {
    append_planned(draw_sample(model, train, kBatches * static_cast<double>(batch_tokens)).drawn);
  }
  return outermost(std::move(sizes));
}

BatchSize largest_batch(TranslationModel& model, TrainingStep& step, const std::vector<BatchSize>& sizes, double room) {
  return largest_of(sizes, room, [&](const BatchSize& size) { return update_peak(model, step, size); });
}

MemoryLine forecast_update(TranslationModel& model, TrainingStep& step, const BatchSize& batch, double room) {
  return line_of_batch(batch, room, [&](const BatchSize& size) { return update_peak(model, step, size); });
}

double update_peak(TranslationModel& model, TrainingStep& step, const BatchSize& batch) {
  const double peak =
      peak_of([&] { step.add_gradients(made_up_batch(batch), 1 / static_cast<real>(batch.target_rows), 0, 0); });
  model.parameters().reset_gradients();
  return peak;
}

ValidationForecast forecast_loss(const TranslationModel& model, const Corpus& corpus, Index batch_tokens, double room) {
  if (corpus.size() == 0) return {};
  const auto peak = [&](const BatchSize& size) {
    const Batch batch = made_up_batch(size);
    TokenStatistics statistics;
    return peak_of([&] { batch_loss(model, batch, statistics); });
  };
  std::vector<BatchSize> sizes;
  append_sizes(corpus, batches_by_length(corpus, batch_tokens), sizes);
  const BatchSize largest = largest_of(outermost(std::move(sizes)), room, peak);
  return {bytes_of(line_of_batch(largest, room, peak).at(largest.rows())), largest.rows()};
}

ValidationForecast forecast_decoding(const TranslationModel& model, const EncodedText& lines, double room) {
  const Index count = lines.sentences();
  const DecodingConfig& decoding = model.config().decoding;
  SearchOptions greedy = greedy_options(decoding);
  greedy.no_repeat_ngram = 0;
  const Index longest = model.transformer().options().max_length;
  std::vector<BatchSize> sizes;  // target rows are those that may be written
  for (Index begin = 0; begin < count; begin += static_cast<Index>(kLinesAtOnce)) {
    EncodedText block;
    const Index end = std::min(count, begin + static_cast<Index>(kLinesAtOnce));
    for (Index i = begin; i < end; ++i) block.append(lines[i]);
    for (const auto& sentences : batches_by_length(block, decoding.batch_tokens)) {
      BatchSize size{static_cast<Index>(sentences.size()), 0, 0};
      for (const Index s : sentences) {
        size.source_rows += block.length(s) + 1;
        size.target_rows += length_limit(block.length(s), longest, greedy) + 1;
      }
      sizes.push_back(size);
    }
  }
  const Transformer* const networks[] = {&model.transformer()};
  // A part of the sentences; where there are too few, a part of one.
  const auto part_of = [](const BatchSize& size, Index divisor) -> BatchSize {
    const Index sentences = std::max<Index>(1, size.sentences / divisor),
                all = std::max(size.sentences, sentences * divisor);
    const auto rows = [&](Index n) { return std::max(sentences, n * sentences / all); };
    return {sentences, rows(size.source_rows), rows(size.target_rows)};
  };
  const auto peak = [&](const BatchSize& size) {
    greedy.min_length = greedy.max_length = std::max<Index>(1, (size.target_rows - 1) / size.sentences);
    return peak_of([&] {
      try {
        search(networks, any_tokens(size.source_rows), equal_parts(size.source_rows, size.sentences), greedy);
      } catch (const NotANumberError&) {  // of a run that diverged, which says so itself
      }
    });
  };
  constexpr Index kSmall = 1024;  // rows: all of them take little time
  ValidationForecast most;
  for (const BatchSize& size : outermost(std::move(sizes))) {
    const auto part = [&](Index divisor) { return part_of(size, divisor); };
    const Index bytes = bytes_of(line_of(part, size.rows() < kSmall ? 1 : 8, room, peak).at(size.rows()));
    if (bytes > most.bytes) most = {bytes, size.source_rows};
  }
  return most;
}

MemoryForecast forecast_memory(TranslationModel& model, const Corpus& train, const Corpus& valid,
                               const ParallelText& valid_lines, const MemoryRoom& room) {
  const Config& config = model.config();
  const TrainingConfig& training = config.training;
  const Index parameters = model.parameters().size();
  MemoryForecast forecast;
  forecast.state = state_bytes(training, config.optimizer, parameters);
  forecast.held = 2 * parameters * static_cast<Index>(sizeof(real));
  forecast.process = kProgramBytes + held_text_bytes(model, train);
  forecast.text = text_bytes(model, train, most_tokens(training, training.batch_tokens), training.batch_tokens);
  std::span<const std::string> sources = valid_lines.source;
  if (training.validation_sentences > 0) {
    sources = sources.first(std::min(sources.size(), static_cast<std::size_t>(training.validation_sentences)));
  }
  forecast.validation_lines = static_cast<Index>(sources.size());
  const std::vector<BatchSize> batches = training_batches(model, train, training.batch_tokens);
  for (const BatchSize& size : batches) forecast.largest_rows = std::max(forecast.largest_rows, size.rows());
  for (Index i = 0; i < train.size(); ++i) {
    forecast.longest_rows = std::max(forecast.longest_rows, train.source.length(i) + train.target.length(i) + 2);
  }
  forecast.validation = validation_bytes(model, valid, valid_lines.target);
  const double work = forecast.room_for_work(room.bytes);
  if (work <= 0) return forecast;
  try {
    TrainingStep step(model);
    const BatchSize largest = largest_batch(model, step, batches, work);
    forecast.largest_rows = largest.rows();
    forecast.update = forecast_update(model, step, largest, work);
    if (forecast.update.at(largest.rows()) <= work) {
      const double exact = std::min(update_peak(model, step, largest), work + 1);
      forecast.update = line_through(0, std::min(forecast.update.fixed, exact), largest.rows(), exact);
    }
  } catch (const OutOfMemory&) {
    // A limited address space counts all of a block, which may be a quarter more than its tensor.
    for (Index* bytes : {&forecast.state, &forecast.held}) *bytes += *bytes / 4;
    forecast.update = {work + 1, 0};
    return forecast;
  }
  if (forecast.update.at(forecast.largest_rows) > work) release_unused_memory();  // it is scarce
  forecast.loss = forecast_loss(model, valid, training.batch_tokens, work);
  forecast.decoding = forecast_decoding(model, translated(model, valid, sources), work);
  return forecast;
}

Index expected_peak(const MemoryForecast& forecast, const ResidentMemory& before) {
  return std::max(before.peak, before.now + forecast.to_come());
}

}  // namespace weft

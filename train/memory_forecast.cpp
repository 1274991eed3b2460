#include "weft/train/memory_forecast.h"

#include <algorithm>
#include <cmath>

#include "weft/core/memory.h"
#include "weft/optim/optimizer.h"
#include "weft/train/decode_rules.h"
#include "weft/train/search.h"
#include "weft/train/translate.h"

namespace weft {
namespace {

/// The share of what the pool may keep at most that it does keep in a long run, whose batches are of many shapes. Measured:
/// see tests/torture/memory.
constexpr double kKept = 0.75;

Index bytes_of(double bytes) { return static_cast<Index>(std::ceil(std::max(bytes, 0.0))); }

/// The most tensor memory in bytes that `work` takes beside what there is.
template <class Work>
double peak_of(Work work) {
  reset_peak_memory();
  const Index before = memory_statistics().current_bytes;
  work();
  return static_cast<double>(memory_statistics().peak_bytes - before);
}

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

/// A batch of 1/divisor of the rows. Powers of two give blocks of the pool's same relative sizes.
BatchSize divided(const BatchSize& size, Index divisor) {
  const auto part = [&](Index n) { return std::max<Index>(1, n / divisor); };
  const Index source = part(size.source_rows), target = part(size.target_rows);
  return {std::min({part(size.sentences), source, target}), source, target};
}

/// The most that an update with such a batch takes beside what there is. The gradients are forgotten.
double update_peak(TranslationModel& model, TrainingStep& step, const BatchSize& size) {
  return peak_of([&] {
    step.add_gradients(made_up_batch(size), 1 / static_cast<real>(size.target_rows), 0, 0);
    model.parameters().reset_gradients();
  });
}

/// The line through two points of (rows, bytes), which falls nowhere.
MemoryLine line_through(Index rows1, double bytes1, Index rows2, double bytes2) {
  if (rows2 <= rows1) return {bytes1, 0};
  const double row = std::max(0.0, (bytes2 - bytes1) / static_cast<double>(rows2 - rows1));
  return {std::max(0.0, bytes1 - row * static_cast<double>(rows1)), row};
}

/// What the process has for so many bytes of tensors: these, and what the pool keeps.
double with_kept(double tensors) {
  const auto most = static_cast<double>(most_reserved(static_cast<Index>(tensors)));
  return tensors + kKept * (most - tensors);
}

/// How many pairs of these are translated at validations.
Index translated_pairs(const Corpus& valid, Index most) {
  if (most == 0) return valid.size();
  return std::lower_bound(valid.line.begin(), valid.line.end(), most) - valid.line.begin();
}

/// The options of a validation's search.
SearchOptions greedy_options(const DecodingConfig& decoding) {
  SearchOptions greedy = search_options(decoding);
  greedy.beam = 1;
  return greedy;
}

}  // namespace

Index MemoryForecast::to_come() const {
  return text + validation.bytes() + bytes_of(with_kept(static_cast<double>(state) + work())) - held;
}

double MemoryForecast::room_for_work(Index room) const {
  const double fixed = with_kept(0), all = static_cast<double>(room - text - validation.bytes() + held);
  constexpr double kUnit = 1 << 30;
  return std::max(0.0, (all - fixed) / ((with_kept(kUnit) - fixed) / kUnit) - static_cast<double>(state));
}

Index state_bytes(const TrainingConfig& training, const OptimizerConfig& optimizer, Index parameters) {
  const OptimizerOptions options{.name = optimizer.name, .momentum = optimizer.momentum};
  const auto buffers = 2 + static_cast<Index>(make_optimizer(options, 1)->state().size()) + (training.ema_decay > 0);
  return buffers * parameters * static_cast<Index>(sizeof(real));
}

Index corpus_bytes(const Corpus& corpus) {
  const auto tokens = static_cast<Index>(corpus.source.tokens.size() + corpus.target.tokens.size());
  return tokens * static_cast<Index>(sizeof(TokenId)) + 3 * corpus.size() * static_cast<Index>(sizeof(Index));
}

Index text_bytes(const Corpus& train, const DataConfig& config) {
  constexpr Index kPlanned = 2 * sizeof(Index);  // order and batches; the rest of planning is memory that is free again
  return kPlanned * train.size() + (config.subword_sampling > 0 ? corpus_bytes(train) : 0);
}

BatchSize size_of(const Corpus& corpus, const std::vector<Index>& sentences) {
  BatchSize size{static_cast<Index>(sentences.size()), 0, 0};
  for (const Index sentence : sentences) {
    size.source_rows += corpus.source.length(sentence) + 1;
    size.target_rows += corpus.target.length(sentence) + 1;
  }
  return size;
}

const std::vector<Index>& largest_batch(const Corpus& corpus, const std::vector<std::vector<Index>>& batches) {
  return *std::max_element(batches.begin(), batches.end(), [&](const auto& a, const auto& b) {
    return size_of(corpus, a).rows() < size_of(corpus, b).rows();
  });
}

MemoryLine forecast_update(TranslationModel& model, TrainingStep& step, const BatchSize& batch) {
  const BatchSize small = divided(batch, 8), large = divided(batch, 4);
  const double few = update_peak(model, step, small);
  return line_through(small.rows(), few, large.rows(), update_peak(model, step, large));
}

DecodingForecast forecast_decoding(const TranslationModel& model, const EncodedText& lines, Index count) {
  if (count == 0) return {};
  const DecodingConfig& decoding = model.config().decoding;
  SearchOptions greedy = greedy_options(decoding);
  greedy.no_repeat_ngram = 0;
  const Index longest = model.transformer().options().max_length;
  Index most = 0, rows = 0, length = 0, steps = 0;
  for (Index begin = 0; begin < count; begin += static_cast<Index>(kLinesAtOnce)) {
    EncodedText block;
    const Index end = std::min(count, begin + static_cast<Index>(kLinesAtOnce));
    for (Index i = begin; i < end; ++i) block.append(lines[i]);
    for (const auto& sentences : batches_by_length(block, decoding.batch_tokens)) {
      Index tokens = 0, all = 0;
      for (const Index s : sentences) {
        all += block.length(s);
        tokens += length_limit(block.length(s), longest, greedy) + 1;
      }
      if (tokens <= most) continue;
      most = tokens;
      rows = static_cast<Index>(sentences.size());
      length = all / rows;
      steps = (tokens + rows - 1) / rows - 1;
    }
  }
  const Transformer* const networks[] = {&model.transformer()};
  greedy.min_length = greedy.max_length = std::max<Index>(steps, 1);
  const auto peak = [&](Index sentences) {
    return peak_of([&] {
      search(networks, any_tokens(sentences * (length + 1)), equal_parts(sentences * (length + 1), sentences), greedy);
    });
  };
  const Index few = std::max<Index>(1, rows / 16);
  const double least = peak(few);
  return {bytes_of(line_through(few, least, 2 * few, peak(2 * few)).at(rows)), rows * (length + 1)};
}

MemoryForecast forecast_memory(TranslationModel& model, const Corpus& train, const Corpus& valid,
                               const MemoryRoom& room) {
  const Config& config = model.config();
  const Index parameters = model.parameters().size();
  MemoryForecast forecast;
  forecast.state = state_bytes(config.training, config.optimizer, parameters);
  forecast.held = 2 * parameters * static_cast<Index>(sizeof(real));
  forecast.process = kProgramBytes + corpus_bytes(train);
  forecast.text = text_bytes(train, config.data);
  forecast.validation_lines = translated_pairs(valid, config.training.validation_sentences);
  const auto batches =
      BatchPlan(train, config.training.batch_tokens, static_cast<std::uint64_t>(config.training.seed)).epoch(0);
  const BatchSize largest = size_of(train, largest_batch(train, batches));
  forecast.largest_rows = largest.rows();
  for (Index i = 0; i < train.size(); ++i) {
    forecast.longest_rows = std::max(forecast.longest_rows, train.source.length(i) + train.target.length(i) + 2);
  }
  if (forecast.room_for_work(room.bytes) <= 0) return forecast;
  TrainingStep step(model);
  forecast.update = forecast_update(model, step, largest);
  forecast.decoding = forecast_decoding(model, valid.source, forecast.validation_lines);
  forecast.validation = translation_bytes(model, valid, forecast.validation_lines, make_metrics(kUsualMetrics),
                                          greedy_options(config.decoding));
  if (forecast.work() > forecast.room_for_work(room.bytes)) return forecast;
  const double exact = update_peak(model, step, largest);
  forecast.update = line_through(0, std::min(forecast.update.fixed, exact), largest.rows(), exact);
  return forecast;
}

Index expected_peak(const MemoryForecast& forecast, const ResidentMemory& before) {
  return std::max(before.peak, before.now + forecast.to_come());
}

}  // namespace weft

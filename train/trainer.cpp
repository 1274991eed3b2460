#include "weft/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <span>

#include "weft/core/clock.h"
#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/core/memory.h"
#include "weft/train/ensemble_decoder.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/text_format.h"
#include "weft/train/translate.h"
#include "weft/train/validation_history.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Exchanges two buffers for as long as it lives.
class Exchanged {
 public:
  Exchanged(std::span<real> a, std::span<real> b) : a_(a), b_(b) { exchange(); }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;
  ~Exchanged() { exchange(); }

 private:
  void exchange() { std::swap_ranges(a_.begin(), a_.end(), b_.begin()); }

  std::span<real> a_, b_;
};

}  // namespace

std::optional<TrainingEnd> training_end(const TrainingState& state, const TrainingConfig& training) {
  if (state.step >= training.steps) return TrainingEnd::kDone;
  if (state.out_of_time) return TrainingEnd::kOutOfTime;
  const bool impatient =
      training.patience > 0 && validations_without_better(state.validations, training.best_metric) >= training.patience;
  return impatient ? std::optional(TrainingEnd::kOutOfPatience) : std::nullopt;
}

Trainer::Trainer(TranslationModel& model, TrainingState state, TrainingData data, fs::path folder, Progress& progress)
    : model_(model),
      state_(std::move(state)),
      data_(std::move(data)),
      folder_(std::move(folder)),
      last_(folder_ / "last.safetensors"),
      last_step_(state_.step),
      progress_(progress),
      step_(model),
      train_(std::make_shared<const Corpus>(std::move(data_.train))),
      log_(take_up()),
      earlier_seconds_(log_.kept_seconds()),
      started_(now()) {
  set_rate();
}

RunLog Trainer::take_up() {
  begin_epoch();
  if (state_.next_batch > static_cast<Index>(epoch_.size())) {
    throw CheckpointError(fmt::format("{}: it stands at batch {} of an epoch that has {}; use --fresh to start anew",
                                      last_.string(), state_.next_batch, epoch_.size()));
  }
  const TrainingConfig& training = config();
  if (training.ema_decay > 0) {
    const Tensor values = model_.parameters().values();
    average_.emplace(training.ema_decay, values.values());
  }
  if (state_.step > 0) {
    load_optimizer(last_, step_.optimizer());
    if (average_) load_average(last_, average_->values());
  }
  return open_log(state_.rollbacks);
}

RunLog Trainer::open_log(Index rollbacks) const {
  data_.require_folder();
  RunLog log((folder_ / "log.jsonl").string(), state_.step, rollbacks);
  data_.require_folder();
  return log;
}

void Trainer::set_rate() {
  step_.set_rate_factor(std::pow(kRollbackFactor, static_cast<double>(state_.rollbacks)));
  step_.set_plateaus(plateaus(state_.validations, config().best_metric, model_.config().schedule.patience));
}

Trainer::~Trainer() {
  try {
    note_time();
  } catch (const std::exception&) {  // what stands there is from after the last update
  }
}

double Trainer::elapsed_seconds() const { return earlier_seconds_ + now() - started_; }

void Trainer::note_time() {
  try {
    if (spent_time_) spent_time_->write(elapsed_seconds());
  } catch (const Error& error) {
    go_without(error);
  }
}

void Trainer::go_without(const Error& error) {
  spent_time_.reset();
  progress_.line(fmt::format("warning: {}; a later session will count the time of this one as far as log.jsonl has it",
                             error.what()));
}

std::vector<std::vector<Index>> Trainer::plan(const Corpus& corpus, Index epoch) const {
  return BatchPlan(corpus, config().batch_tokens, static_cast<std::uint64_t>(config().seed)).epoch(epoch);
}

Index Trainer::tokens_per_epoch() const {
  return static_cast<Index>(train_->source.tokens.size() + train_->target.tokens.size());
}

void Trainer::begin_epoch() {
  if (data_.train_in_epoch) train_ = std::make_shared<const Corpus>(data_.train_in_epoch(state_.epoch));
  epoch_ = {};  // before the next is planned: both at a time would take more than the forecast of a run says
  epoch_ = plan(*train_, state_.epoch);
}

BatchSentences Trainer::next_sentences() {
  if (state_.next_batch == static_cast<Index>(epoch_.size())) {
    ++state_.epoch;
    state_.next_batch = 0;
    begin_epoch();
  }
  return {train_, epoch_[static_cast<std::size_t>(state_.next_batch++)]};
}

UpdateResult Trainer::update() {
  std::vector<BatchSentences> batches;  // only the sentences' numbers of all batches are held at once
  for (Index i = 0; i < config().accumulate; ++i) batches.push_back(next_sentences());
  UpdateResult result;
  try {
    result = step_.run(state_.step, batches);
  } catch (const DivergenceError& divergence) {
    return skip(divergence);
  }
  ++state_.step;
  state_.skipped_in_row = 0;
  if (average_) {
    const Tensor values = model_.parameters().values();
    average_->update(values.values(), state_.step);
  }
  state_.loss_sum += result.loss * static_cast<double>(result.tokens);
  state_.loss_tokens += result.tokens;
  watch_loss(result.loss);
  return result;
}

void Trainer::log(const UpdateResult& update) {
  const double time = now();
  timed_tokens_ += update.tokens;
  const double mean_loss = state_.loss_sum / static_cast<double>(state_.loss_tokens);
  const double speed = static_cast<double>(timed_tokens_) / std::max(time - logged_at_, 1e-9);
  const double done = static_cast<double>(state_.step), left = static_cast<double>(config().steps) - done;
  progress_.update({state_.step, config().steps, state_.epoch + 1, mean_loss, update.learning_rate, speed,
                    std::min(elapsed_seconds() / done * left, std::max(0.0, deadline_ - time))});
  if (state_.step % config().log_every != 0 && state_.step != config().steps) return;
  log_.write(StepEntry{state_.step, state_.epoch + 1, mean_loss, update.learning_rate, update.gradient_norm, speed,
                       memory_statistics().peak_bytes, elapsed_seconds()});
  state_.loss_sum = 0;
  state_.loss_tokens = 0;
  timed_tokens_ = 0;
  logged_at_ = time;
}

void Trainer::validate() {
  require_finite();
  if (!average_) return validate_as_is();
  Tensor values = model_.parameters().values();
  const Exchanged exchanged(values.values(), average_->values());
  validate_as_is();
}

void Trainer::validate_as_is() {
  const DecodingConfig& decoding = model_.config().decoding;
  const LossResult loss = evaluate_loss(model_, data_.valid, config().batch_tokens);
  require_finite_validation(loss.loss);
  SearchOptions greedy = search_options(decoding);
  greedy.beam = 1;
  BleuOptions bleu;
  bleu.tokenizer = bleu_tokenizer(decoding.bleu_tokenizer);
  const Metrics metrics = make_metrics("bleu,chrf", bleu);
  TranslationResult result;
  try {
    result = evaluate_translations(model_, data_.valid_text.source, std::span(&data_.valid_text.target, 1), metrics,
                                   greedy, decoding.batch_tokens);
  } catch (const NotANumberError&) {
    throw DivergenceError(state_.step, "the model's output for a validation line is not a number", "");
  }
  const auto score = [&](std::size_t metric) { return metrics[metric]->score(result.counts[metric].sums()); };
  const ValidationEntry entry{state_.step, loss.loss, loss.perplexity, loss.token_accuracy, share_of(result.exact),
                              score(0),    score(1)};
  const double best_before = best_score(state_, config().best_metric);
  const Index best_step_before = state_.best_step;
  state_.good_step = state_.step;  // nothing can be found amiss from here to save_last()
  state_.validations.push_back(entry);
  state_.best_step = state_.step;
  const double best = best_score(state_, config().best_metric);
  // Of equal results the last counts: its learning rate was lower.
  const bool improved = !is_better(config().best_metric, best_before, best);
  if (!improved) state_.best_step = best_step_before;
  set_rate();
  log_.write(entry);

  const double printing = now();
  progress_.line(
      fmt::format("validation at step {}: loss {:.4f}, perplexity {}, token accuracy {:.2f} %, exact match {:.2f} "
                  "%, BLEU {:.2f}, chrF {:.2f}{}",
                  entry.step, entry.loss, format_perplexity(entry.perplexity), 100 * entry.token_accuracy,
                  100 * entry.exact_match, entry.bleu, entry.chrf, improved ? "  (best so far)" : ""));
  const auto samples = std::min(static_cast<std::size_t>(config().samples), data_.valid_text.source.size());
  for (std::size_t i = 0; i < samples; ++i) {
    progress_.line(fmt::format("  source     {}", data_.valid_text.source[i]));
    progress_.line(fmt::format("  reference  {}", data_.valid_text.target[i]));
    progress_.line(fmt::format("  output     {}", result.translations[i]));
  }
  printing_ = now() - printing;
  if (kept_steps(state_.validations, config()).count(state_.step) > 0) {
    save_parameters(step_checkpoint(folder_, state_.step));
  }
  if (improved) save_parameters(folder_ / "best.safetensors");
}

void Trainer::end_within(double seconds, double validation_seconds, double spent) {
  data_.require_folder();
  const fs::path file = folder_ / kSpentFile;
  if (is_there(last_)) earlier_seconds_ = std::max(earlier_seconds_, read_spent_seconds(file));
  started_ = now() - spent;
  deadline_ = started_ + seconds - earlier_seconds_;
  // What a model writes that has not learned to end sentences takes longer than was measured, but not for ever.
  validation_time_.take(validation_seconds);
  validation_time_.take(3 * validation_seconds);
  try {
    spent_time_.emplace(file, elapsed_seconds());
  } catch (const Error& error) {
    go_without(error);
  }
}

/// Whether the time is only enough to end the run now: with the validation that is due, if one is, and no other after it.
bool Trainer::time_is_up(bool validates) const {
  const double ending = 1.1 * validation_time_.seconds() + 0.05;
  return now() + 2 * update_time_.seconds() + (validates ? 2 : 1) * ending > deadline_;
}

bool Trainer::advance(const volatile int& stop) {
  double began = now();
  const UpdateResult result = update();
  update_time_.take(now() - began);
  log(result);
  note_time();
  bool validates = state_.step == config().steps || state_.step % config().validate_every == 0;
  if (state_.step < config().steps && time_is_up(validates)) validates = state_.out_of_time = true;
  began = now();
  if (validates) validate();
  // One that took longer than was expected may have left no time for another.
  if (validates && state_.step < config().steps && time_is_up(false)) state_.out_of_time = true;
  const bool saves = validates || (config().save_every > 0 && state_.step % config().save_every == 0);
  const bool stops = stop != 0;  // read once: what comes later is for the next update
  if (saves) save_last(true);
  if (stops && !saves) save_for_stop();
  if (validates) {
    remove_step_checkpoints(folder_, kept_steps(state_.validations, config()));
    validation_time_.take(now() - began - printing_);
    note_time();
  }
  logged_at_ += now() - began;  // the speed counts training alone
  return stops;
}

TrainingEnd Trainer::run(const volatile int& stop) {
  logged_at_ = now();
  reset_peak_memory();
  // The first validation may be far, and there must be something to go back to.
  if (config().on_divergence == "rollback" && !is_there(last_)) save_last(true);
  std::optional<TrainingEnd> end = training_end(state_, config());
  while (!end) {
    bool stopped = false;
    try {
      stopped = advance(stop);
    } catch (const DivergenceError& divergence) {
      roll_back(divergence);  // which saves
      stopped = stop != 0;
    }
    end = training_end(state_, config());
    if (!end && stopped) end = TrainingEnd::kStopped;
  }
  return *end;
}

}  // namespace weft

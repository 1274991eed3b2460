// What the training loop saves, and what it does about numbers that are not finite and losses that explode. Whatever
// the policy, what follows depends on the state that the checkpoints hold, so a run stopped at any point goes on as one
// never stopped.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "weft/core/clock.h"
#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/core/out_of_memory.h"
#include "weft/data/batch.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/trainer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShown = 3;  // sentences of a batch that a message names
constexpr Index kMostPlaced =
    20;  // skipped updates whose sentences are looked up in the files, which reads these again

/// The first bad number that a model makes of a text, as a line. Throws OutOfMemory or std::bad_alloc if memory is out,
/// which a tape takes that no forecast counts.
std::string bad_number_in(TranslationModel& model, const Corpus& corpus, Index batch_tokens) {
  AnomalyDetector detector;
  Tape tape;
  tape.set_detector(&detector);
  Context context;
  context.tape = &tape;
  for (const auto& sentences : batches_by_length(corpus, batch_tokens)) {
    const Batch batch = make_batch(corpus, sentences);
    model.transformer().loss(context,
                             {batch.source, batch.source_rows, batch.decoder_input, batch.target, batch.target_rows},
                             {0, 1, nullptr});
    tape.clear();
    if (detector.found()) return describe(*detector.found(), model.parameters());
  }
  return "first bad number: none in a pass that keeps all results, as it rounds otherwise; the largest are at the edge";
}

/// The same, or that it could not be found: what is done about it must not hang on that.
std::string first_in_validation(TranslationModel& model, const Corpus& corpus, Index batch_tokens) {
  constexpr const char* kNotSought = "first bad number: not looked for, as memory is out";
  try {
    return bad_number_in(model, corpus, batch_tokens);
  } catch (const OutOfMemory&) {
    return kNotSought;
  } catch (const std::bad_alloc&) {
    return kNotSought;
  }
}

}  // namespace

void Trainer::require_finite() {
  const auto check = [&](const std::string& what, std::span<const real> values) {
    const Index bad = first_not_finite(values);
    if (bad < 0) return;
    const double value = std::abs(static_cast<double>(values[static_cast<std::size_t>(bad)]));
    throw DivergenceError(state_.step, fmt::format("{} has a number that is {}", what, value),
                          "first bad number: " + element_name(bad, model_.parameters()));
  };
  const Tensor values = model_.parameters().values();
  check("a parameter", values.values());
  for (const auto& [name, buffer] : step_.optimizer().state()) check("the optimizer's " + name, buffer);
  if (average_) check("the moving average", std::as_const(*average_).values());
}

void Trainer::require_finite_validation(double loss) {
  if (std::isfinite(loss)) return;
  throw DivergenceError(state_.step, fmt::format("the validation loss is {}", std::abs(loss)),
                        first_in_validation(model_, data_.valid, config().batch_tokens));
}

std::string Trainer::batch_line(const DivergenceError& divergence) const {
  if (divergence.batches.empty()) return "";
  // Where the batch is not known, any sentence of the update may be it.
  std::vector<Index> pairs;
  for (std::size_t i = 0; i < divergence.batches.size(); ++i) {
    if (divergence.batch >= 0 && static_cast<Index>(i) != divergence.batch) continue;
    const auto& [corpus, sentences] = divergence.batches[i];
    for (const Index s : sentences) pairs.push_back(corpus->line[static_cast<std::size_t>(s)]);
  }
  const std::size_t all = pairs.size();
  if (divergence.sentence >= 0) {
    std::rotate(pairs.begin(), pairs.begin() + divergence.sentence, pairs.begin() + divergence.sentence + 1);
  }
  pairs.resize(std::min(all, kShown));
  std::vector<std::string> places;
  if (data_.places && state_.skipped < kMostPlaced) {
    try {
      places = data_.places(pairs);
    } catch (const Error&) {  // the files are gone or have changed: the numbers are what is left to say
    }
  }
  if (places.size() != pairs.size()) {
    places.clear();
    for (const Index pair : pairs) places.push_back(fmt::format("pair {} of the training text", pair + 1));
  }
  std::string text = fmt::format("\n  batch of {} pairs: {}", all, fmt::join(places, ", "));
  if (all > places.size()) text += fmt::format(" and {} more", all - places.size());
  if (divergence.sentence >= 0) text += fmt::format("; the number is in {}", places.front());
  return text;
}

std::string Trainer::account(const DivergenceError& divergence) const {
  return divergence.what() + batch_line(divergence);
}

void Trainer::note(const char* event, Index count, const std::string& text) {
  log_.write(EventEntry{state_.step, event, count, text});
  progress_.line("warning: " + text);
}

UpdateResult Trainer::skip(const DivergenceError& divergence) {
  if (config().on_divergence != "skip" || !divergence.skippable || state_.skipped_in_row == kMostSkipped) {
    throw divergence;
  }
  const std::string text = account(divergence) + "\n  this update is left out";
  ++state_.step;
  ++state_.skipped;
  ++state_.skipped_in_row;
  note("skipped", state_.skipped, text);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {kNone, kNone, step_.rate(state_.step - 1), 0};
}

bool Trainer::may_roll_back() const {
  return config().on_divergence == "rollback" && state_.rollbacks < kMostRollbacks;
}

bool Trainer::keep_for_rollback() {
  const fs::path kept = folder_ / kRollbackFile;
  if (!is_there(last_)) return false;
  std::error_code error;
  const fs::path file = fs::canonical(last_, error);
  if (error) {
    throw Error(fmt::format("{}: cannot be looked at: {}; check the path, the disk and the right to read it",
                            last_.string(), error.message()));
  }
  fs::remove(kept, error);
  fs::create_hard_link(file, kept, error);  // it is replaced and never written to
  if (error) copy_checkpoint(file, kept);   // a file system without links
  return true;
}

void Trainer::save_parameters(const fs::path& path) {
  data_.require_folder();
  save_checkpoint(path, model_, state_, nullptr);
}

void Trainer::save_last(bool due) {
  require_finite();
  data_.require_folder();
  const bool goes_back =
      !due && config().on_divergence == "rollback" && (state_.good_step != last_step_ || keep_for_rollback());
  if (!goes_back) state_.good_step = state_.step;
  data_.require_folder();
  save_checkpoint(last_, model_, state_, &step_.optimizer(),
                  average_ ? std::as_const(*average_).values() : std::span<const real>());
  last_step_ = state_.step;
  if (goes_back) return;
  data_.require_folder();
  std::error_code ignored;  // one that is left over is not used
  fs::remove(folder_ / kRollbackFile, ignored);
}

void Trainer::save_for_stop() {
  try {
    save_last(false);
  } catch (const DivergenceError& divergence) {
    std::error_code ignored;
    const bool any = fs::exists(last_, ignored);
    progress_.line(fmt::format("warning: {}\n  not saved; the run goes on from {}", divergence.what(),
                               any ? fmt::format("its checkpoint of step {}", last_step_) : "its beginning"));
  }
}

fs::path Trainer::way_back() const {
  data_.require_folder();
  return state_.good_step == last_step_ ? last_ : folder_ / kRollbackFile;
}

void Trainer::roll_back(const DivergenceError& divergence) {
  const std::string text = account(divergence);
  if (!may_roll_back()) {
    const std::string& policy = config().on_divergence;
    const std::string end =
        policy == "rollback" ? fmt::format("went back {} times already, and stopped", state_.rollbacks)
        : policy == "skip" && !divergence.skippable ? "without this update it would be no better; stopped"
        : policy == "skip" ? fmt::format("{} updates in a row were left out before it; stopped", state_.skipped_in_row)
                           : "stopped";
    std::error_code ignored;
    const bool may_go_on = policy == "stop" && fs::exists(last_, ignored);
    const char* const policies = divergence.skippable ? "\"skip\" or \"rollback\"" : "\"rollback\"";
    const std::string full = fmt::format(
        "{}\n  {} before it could reach a checkpoint. {}{}", text, end, divergence_advice(model_.config()),
        may_go_on ? fmt::format("; or go on from the last checkpoint with training.on_divergence {}", policies) : "");
    // Of an update that is not in a checkpoint, so that a run that goes on has it no more.
    log_.write(EventEntry{state_.step + (divergence.batches.empty() ? 0 : 1), "stopped", 1, full});
    throw Error(full);
  }
  const TrainingState diverged = state_;
  const fs::path from = way_back();
  state_ = load_state(from);
  state_.epoch = diverged.epoch;  // the text goes on: what came before the divergence is not read again
  state_.next_batch = diverged.next_batch;
  if (diverged.best_step == 0) state_.best_step = 0;  // its checkpoint is not there
  ++state_.rollbacks;
  load_parameters(from, model_);
  load_optimizer(from, step_.optimizer());
  if (average_) load_average(from, average_->values());
  set_rate();
  // The log has the rollback before the checkpoint has it: of a run killed between the two it is dropped and made again.
  log_ = open_log(state_.rollbacks - 1);
  note("rollback", state_.rollbacks,
       fmt::format("{}\n  back to step {}, on with the text that follows, at {:g} times the learning rate", text,
                   state_.step, std::pow(kRollbackFactor, static_cast<double>(state_.rollbacks))));
  save_last(true);
  logged_at_ = now();
  timed_tokens_ = 0;
}

void Trainer::watch_loss(double loss) {
  if (!state_.loss_watch.take(loss)) return;
  const std::string headline = fmt::format("the loss explodes: smoothed it is {:.4g}, and was {:.4g} at its least",
                                           state_.loss_watch.mean, state_.loss_watch.least);
  // Only a checkpoint from before the loss rose is worth going back to.
  if (may_roll_back() && load_state(way_back()).loss_watch.above == 0) {
    throw DivergenceError(state_.step, headline, "");
  }
  note("explosion", ++state_.explosions,
       fmt::format("step {}: {}. {}", state_.step, headline, divergence_advice(model_.config())));
}

}  // namespace weft

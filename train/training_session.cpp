#include "weft/train/training_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <system_error>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/train/commands.h"
#include "weft/train/divergence.h"
#include "weft/train/epoch_encoder.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/memory_budget.h"
#include "weft/train/memory_forecast.h"
#include "weft/train/memory_refusal.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/run_inputs.h"
#include "weft/train/run_texts.h"
#include "weft/train/same_command.h"
#include "weft/train/stop_signal.h"
#include "weft/train/text_format.h"
#include "weft/train/time_budget.h"
#include "weft/train/warm_start.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The first `count` lines of a text; 0 keeps all.
ParallelText first_lines(ParallelText text, Index count) {
  if (count > 0 && static_cast<Index>(text.source.size()) > count) {
    text.source.resize(static_cast<std::size_t>(count));
    text.target.resize(static_cast<std::size_t>(count));
  }
  return text;
}

/// What is to be said of lines that could not be printed.
std::string lost_lines(const Progress& progress, const char* run = "the run is whole and saved") {
  return fmt::format("standard output: cannot write ({}); lines were lost, but {}", std::strerror(progress.error()),
                     run);
}

/// Ends the command: as a failure if lines were lost on the way, now that the run's work is saved.
int finished(Progress& progress) {
  progress.finish();
  if (progress.error() != 0) throw Error(lost_lines(progress));
  return 0;
}

/// Removes a file that nothing will use any more.
void remove_unused(const fs::path& path) {
  std::error_code ignored;  // it does no harm
  fs::remove(path, ignored);
}

/// Writes the configuration of a run into its folder, or says what it is not in if the one that was given stands there.
void write_config(const fs::path& path, const Config& config, const fs::path& given, const FolderLock& lock,
                  Progress& progress) {
  if (!is_same_file(given, path)) {
    lock.require_held();
    write_file(path, config_json(config));
  } else if (config_json(load_config(given, {})) != config_json(config)) {
    progress.line(
        fmt::format("{} stays as it was given; what the run has besides, as from --set, is in its checkpoints "
                    "(weft inspect)",
                    path.string()));
  }
}

}  // namespace

TrainingSession::TrainingSession(const Arguments& arguments, Config config, const Registry& registry)
    : arguments_(arguments),
      registry_(registry),
      config_file_(arguments.only_positional()),
      config_(std::move(config)),
      folder_(arguments.text("run", (fs::path("runs") / config_file_.stem()).string())),
      last_(folder_ / "last.safetensors"),
      fresh_(arguments.has("fresh")),
      progress_(stdout, arguments.has("quiet"), config_.training.log_every) {}

int TrainingSession::run() {
  require_output_apart();
  // Held before anything is read: another process may be about to replace it.
  if (is_folder(folder_)) hold_folder();
  require_no_folders(folder_);
  if (lock_ && !fresh_ && is_there(last_)) {
    resumes_ = true;
    load_run();
    if (const auto end = training_end(checkpoint_.state, config_.training)) return tidy_ended_run(*end);
    require_training_tensors(last_, *checkpoint_.model);
  }
  if (!fresh_) require_no_links_within(folder_);
  read_text();
  if (!resumes_) make_model();
  encode();
  fit_into_memory();
  if (config_.training.minutes > 0) fit_into_time();
  take_folder();
  return train();
}

/// Throws where output would go into a file that the run reads or writes.
void TrainingSession::require_output_apart() const {
  std::vector<std::string> inputs = files_of_run(folder_);
  for (const std::string& file : all_files(config_.data)) inputs.push_back(file);
  inputs.push_back(config_file_.string());
  if (!config_.training.warm_start.empty()) inputs.push_back(config_.training.warm_start);
  require_not_printed_to(inputs);
}

/// Holds the run folder, which its user has to do where the system cannot.
void TrainingSession::hold_folder() {
  lock_.emplace(folder_);
  if (lock_->why_not_locked().empty()) return;
  warn(fmt::format("{}: cannot be locked ({}); let no other weft train use it meanwhile", folder_.string(),
                   lock_->why_not_locked()));
}

/// Loads the run that is there, which must be of this configuration but for what may change between sessions.
void TrainingSession::load_run() {
  try {
    checkpoint_ = load_checkpoint(last_, registry_);
  } catch (const UnreadableError&) {
    throw;
  } catch (const CheckpointError& error) {
    const fs::path best = folder_ / "best.safetensors";
    const std::string from = is_whole(best) ? fmt::format(", or begin another with --from {}", shell_path(best)) : "";
    throw CheckpointError(fmt::format("{}; without it, begin the run anew with --fresh{}", error.what(), from));
  }
  const Config& before = checkpoint_.model->config();
  require_same_run(before, config_, folder_, arguments_);
  require_same_files(config_.data, checkpoint_.state.file_hashes, folder_.string());
  config_.training.batch_tokens = before.training.batch_tokens;
  config_.training.steps = before.training.steps;
  TrainingConfig trains = before.training;
  trains.on_divergence = config_.training.on_divergence;
  trains.detect_anomaly = config_.training.detect_anomaly;
  checkpoint_.model->set_training(trains);
}

/// Removes what killed processes left, and checkpoints of steps that are not to be kept any more.
void TrainingSession::tidy_run() {
  lock_->require_held();
  clean_run_folder(folder_, kept_steps(checkpoint_.state.validations, config_.training), false);
}

/// Leaves a run that is over as it would be if no process had been killed at its end.
int TrainingSession::tidy_ended_run(TrainingEnd end) {
  tidy_run();
  if (is_task_unfinished(folder_)) {
    mend_task(config_.data.task.empty() ? TaskText() : RunText(config_.data).task(), folder_);
  }
  remove_unused(folder_ / kRollbackFile);  // of a process killed after its last save
  mend_best(folder_, checkpoint_.state, true, progress_);
  progress_.line(fmt::format("{} is trained to its end, step {}{}; use --fresh to train anew", folder_.string(),
                             checkpoint_.state.step, end_reason(end, checkpoint_.state, config_.training)));
  return finished(progress_);
}

void TrainingSession::read_text() {
  if (!resumes_) checkpoint_.state.file_hashes = run_file_hashes(config_.data);  // before they are read
  if (!resumes_ && !fresh_) require_no_results(folder_, config_, registry_);
  if (!resumes_) require_inputs_kept(folder_, config_, fresh_);
  text_.emplace(config_.data);
  if (!resumes_ && !fresh_) require_no_other_files(folder_, config_, config_file_, *text_);
  valid_text_ = text_->split("valid");
  // Training needs no test text, but hours later its user does.
  if (!text_files(config_.data, "test").empty()) text_->split("test");
}

/// Makes the vocabularies and the model of a new run.
void TrainingSession::make_model() {
  Vocabularies vocabularies = build_vocabularies(
      config_.data, [&](FunctionRef<void(const ParallelText&)> take) { return text_->read_train(take); });
  require_room_in_header(vocabularies.source, vocabularies.target);
  checkpoint_.model = std::make_unique<TranslationModel>(config_, std::move(vocabularies.source),
                                                         std::move(vocabularies.target), registry_);
  require_room_for_model(*checkpoint_.model, registry_);
  if (!config_.training.warm_start.empty()) {
    notes_ = warm_start(*checkpoint_.model, config_.training.warm_start, registry_);
  }
}

void TrainingSession::encode() {
  const TranslationModel& model = *checkpoint_.model;
  TrainingState& state = checkpoint_.state;
  const Index longest = std::min(config_.data.max_length, model.longest_sentence());
  training_ = encode_training_text(model, *text_, longest, cache_folder(config_.data, folder_));
  const Corpus& train = training_.encoded.corpus;
  valid_ = encode_text(model, valid_text_, model.longest_sentence(), "the validation text");
  const std::uint64_t hash = content_hash(train) ^ (content_hash(valid_.corpus) << 1);
  if (resumes_ && state.data_hash != hash) {
    throw DataError(
        fmt::format("{}: the text does not give the tokens that this run began with; restore it, or use --fresh to "
                    "start anew",
                    folder_.string()));
  }
  state.data_hash = hash;
  state.held_out_hash = text_->held_out_hash();
  valid_lines_ = first_lines(valid_text_, config_.training.validation_sentences);
  if (config_.data.subword_sampling > 0) {
    train_text_ = text_->split("train");
    train_in_epoch_ = EpochEncoder(model, train_text_, train.line, longest);
  }
  require_files_unchanged(config_.data, state.file_hashes);
}

/// Chooses the batch if a new run has a budget of memory, and throws if the run is not going to fit.
void TrainingSession::fit_into_memory() {
  TranslationModel& model = *checkpoint_.model;
  TrainingConfig& training = config_.training;
  const Corpus& train = training_.encoded.corpus;
  if (!training.memory.empty() && !resumes_) {
    training.batch_tokens =
        batch_tokens_within(model, train, valid_.corpus, parse_bytes(training.memory).value(), valid_lines_.target);
    model.set_training(training);
    notes_.push_back(
        fmt::format("memory budget    {}: training.batch_tokens {}", training.memory, training.batch_tokens));
  }
  model.parameters().allocate();  // they fit
  const ResidentMemory resident = settled_memory();
  const MemoryRoom room = memory_room();
  const MemoryForecast forecast = forecast_memory(model, train, valid_.corpus, valid_lines_, room);
  try {
    require_room(forecast, config_, room);
  } catch (const ConfigError& error) {
    if (!resumes_) throw;
    throw ConfigError(
        fmt::format("{}; the run in {} keeps its configuration, so free memory for it, or begin another with that and "
                    "--run or --fresh",
                    error.what(), folder_.string()));
  }
  memory_note_ = fmt::format("expected memory  {} at its peak; {} {}", format_bytes(expected_peak(forecast, resident)),
                             format_bytes(room.bytes), room.limit);
}

/// Measures what a budget of minutes needs to know, and chooses the steps of a new run.
void TrainingSession::fit_into_time() {
  TranslationModel& model = *checkpoint_.model;
  validation_seconds_ = measure_validation(model, valid_.corpus, valid_lines_);
  if (resumes_) return;
  notes_.push_back(choose_steps(model, config_, training_.encoded.corpus, measure_epoch(model, train_in_epoch_),
                                validation_seconds_, began_));
}

/// Makes the run folder and all in it that is there before training begins.
void TrainingSession::take_folder() {
  if (lock_) lock_->require_held();
  make_run_folder(folder_);
  if (!lock_) {
    hold_folder();
    require_no_folders(folder_);
    if (!fresh_) require_no_links_within(folder_);
    if (is_there(last_)) {
      throw DataError(fmt::format("{}: another weft train began there meanwhile; the same command goes on from it",
                                  folder_.string()));
    }
    if (!fresh_) {  // it may have been made meanwhile
      require_no_results(folder_, config_, registry_);
      require_no_other_files(folder_, config_, config_file_, *text_);
    }
  }
  if (resumes_) {
    mend_task(text_->task(), folder_);
  } else {
    begin_run();
  }
  lock_->require_held();
  keep_cache(training_, config_.data, progress_);
  lock_->require_held();
  mend_best(folder_, checkpoint_.state, false, progress_);
}

/// Replaces what an earlier run left by the text and the configuration of the new one.
void TrainingSession::begin_run() {
  try {
    write_task(text_->task(), folder_);  // may fail, and then costs no earlier run
  } catch (const Error&) {
    lock_->require_held();  // which may be why
    throw;
  }
  lock_->require_held();
  clean_run_folder(folder_, {}, fresh_, config_file_);
  // If this is killed from here on, the log tells that there was a run, and its configuration which text is its own.
  if (const fs::path log = folder_ / "log.jsonl"; !is_there(log)) write_file(log, "");
  write_config(folder_ / "config.json", config_, config_file_, *lock_, progress_);
  lock_->require_held();
  finish_task(folder_);
}

int TrainingSession::train() {
  progress_.line("training text    " + training_.encoded.report.summary());
  progress_.line("validation text  " + valid_.report.summary());
  if (!resumes_) {
    for (const std::string& line : small_vocabulary_warnings(*checkpoint_.model)) progress_.line(line);
  }
  Trainer trainer(*checkpoint_.model, checkpoint_.state,
                  {std::move(training_.encoded.corpus), std::move(valid_.corpus), std::move(valid_lines_),
                   std::move(train_in_epoch_),
                   [this](std::span<const Index> pairs) {
                     return text_->train_places(pairs, folder_, checkpoint_.state.file_hashes);
                   },
                   [this] { lock_->require_held(); }},
                  folder_, progress_);
  if (resumes_) tidy_run();
  print_beginning(trainer);
  if (config_.training.minutes > 0) {
    trainer.end_within(60 * config_.training.minutes, validation_seconds_, now() - began_);
  }
  const volatile int& stop_signal = note_stop_signals();
  const TrainingEnd end = trainer.run(stop_signal);
  progress_.finish();
  return end == TrainingEnd::kStopped ? stopped(trainer, stop_signal) : ended(trainer, end);
}

void TrainingSession::print_beginning(const Trainer& trainer) {
  TranslationModel& model = *checkpoint_.model;
  progress_.line(fmt::format("vocabulary       {} source, {} target tokens",
                             format_count(model.source_vocabulary().size()),
                             format_count(model.target_vocabulary().size())));
  progress_.line(fmt::format("parameters       {}", format_count(model.parameters().count())));
  for (const std::string& line : notes_) progress_.line(line);
  progress_.line(fmt::format("batches          {} an epoch, {} tokens an epoch, {} updates in all",
                             format_count(trainer.batches_per_epoch()), format_count(trainer.tokens_per_epoch()),
                             format_count(config_.training.steps)));
  progress_.line(memory_note_);
  if (resumes_) progress_.line(fmt::format("going on after step {} of {}", checkpoint_.state.step, last_.string()));
}

/// Says how a run that a signal stopped goes on.
int TrainingSession::stopped(const Trainer& trainer, int signal) {
  const std::string saved = trainer.saved() ? "saved in " + show_controls(last_.string()) : "which is not saved";
  progress_.line(fmt::format("stopped after step {}, {}; the same command goes on: {}", trainer.state().step, saved,
                             same_command(arguments_)));
  if (progress_.error() != 0) warn(lost_lines(progress_, "what was trained is saved"));
  return 128 + signal;
}

/// Says what came of a run that is over, and what to do with it.
int TrainingSession::ended(const Trainer& trainer, TrainingEnd end) {
  const TrainingState& state = trainer.state();
  const std::string& metric = config_.training.best_metric;
  const fs::path best = folder_ / "best.safetensors";
  if (const std::string repairs = repair_text(state); !repairs.empty()) progress_.line(repairs);
  if (const std::string why = end_reason(end, state, config_.training); !why.empty()) {
    progress_.line(fmt::format("ended at step {}{}", state.step, why));
  }
  progress_.line(fmt::format("done in {}; best checkpoint: {} (step {}, {} {:.4g})",
                             format_duration(trainer.elapsed_seconds()), show_controls(best.string()), state.best_step,
                             metric, best_score(state, metric)));
  progress_.line(fmt::format("next: {0} evaluate {1}, or: {0} translate {1}", program_name(), shell_path(best)));
  return finished(progress_);
}

}  // namespace weft

// weft train: from a configuration to checkpoints in a run folder.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <system_error>

#include "weft/core/clock.h"
#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/train/commands.h"
#include "weft/train/config_table.h"
#include "weft/train/divergence.h"
#include "weft/train/epoch_encoder.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/memory_budget.h"
#include "weft/train/memory_forecast.h"
#include "weft/train/memory_refusal.h"
#include "weft/train/output_file.h"
#include "weft/train/run_data.h"
#include "weft/train/run_files.h"
#include "weft/train/run_folder.h"
#include "weft/train/run_texts.h"
#include "weft/train/same_command.h"
#include "weft/train/stop_signal.h"
#include "weft/train/text_format.h"
#include "weft/train/time_budget.h"
#include "weft/train/trainer.h"
#include "weft/train/training_text.h"
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

/// The overrides of the configuration, those with an option of their own last.
std::vector<std::string> overrides(const Arguments& arguments) {
  std::vector<std::string> all = arguments.all("set");
  if (arguments.has("minutes")) {
    all.push_back(fmt::format("training.minutes={}", arguments.number("minutes", 0, kMostMinutes)));
  }
  if (arguments.has("from")) all.push_back("training.warm_start=" + arguments.text("from"));
  return all;
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

int train(const Arguments& arguments, const Registry& registry) {
  const double began = now();
  const fs::path config_file = arguments.only_positional();
  Config config = load_config(config_file, overrides(arguments));
  require_training_data(config);
  check_options(config.model, registry);
  use_threads(arguments, config.training.threads);
  Progress progress(stdout, arguments.has("quiet"), config.training.log_every);

  const fs::path folder = arguments.text("run", (fs::path("runs") / config_file.stem()).string());
  const fs::path last = folder / "last.safetensors";
  std::vector<std::string> inputs = files_of_run(folder);
  for (const std::string& file : all_files(config.data)) inputs.push_back(file);
  inputs.push_back(config_file.string());
  if (!config.training.warm_start.empty()) inputs.push_back(config.training.warm_start);
  require_not_printed_to(inputs);
  Checkpoint checkpoint;
  // Held before anything is read: another process may be about to replace it.
  std::optional<FolderLock> lock;
  if (is_folder(folder)) lock.emplace(folder);
  const bool fresh = arguments.has("fresh");
  require_files_of_run(folder, fresh);
  const bool resumes = lock && !fresh && is_there(last);
  if (resumes) {
    checkpoint = load_checkpoint(last, registry);
    require_same_run(checkpoint.model->config(), config, folder, arguments);
    require_same_files(config.data, checkpoint.state.file_hashes, folder.string());
    config.training.batch_tokens = checkpoint.model->config().training.batch_tokens;
    config.training.steps = checkpoint.model->config().training.steps;
    TrainingConfig trains = checkpoint.model->config().training;
    trains.on_divergence = config.training.on_divergence;
    trains.detect_anomaly = config.training.detect_anomaly;
    checkpoint.model->set_training(trains);
    if (const auto end = training_end(checkpoint.state, config.training)) {
      lock->require_held();
      clean_run_folder(folder, kept_steps(checkpoint.state.validations, config.training), false);
      remove_unused(folder / kRollbackFile);  // of a process killed after its last save
      mend_best(folder, checkpoint.state, true, progress);
      progress.line(fmt::format("{} is trained to its end, step {}{}; use --fresh to train anew", folder.string(),
                                checkpoint.state.step, end_reason(*end, checkpoint.state, config.training)));
      return finished(progress);
    }
    require_training_tensors(last, *checkpoint.model);
  } else {
    checkpoint.state.file_hashes = run_file_hashes(config.data);  // before they are read
  }

  if (fresh) {
    require_not_removed(folder, config.training.warm_start);
  } else if (!resumes) {
    require_no_results(folder, config, registry);
  }

  const RunText text(config.data);
  if (!resumes && !fresh) require_no_other_files(folder, config, config_file, text);
  const ParallelText valid_text = text.split("valid");
  // Training needs no test text, but hours later its user does.
  if (!text_files(config.data, "test").empty()) text.split("test");
  std::vector<std::string> warm_report, choices;
  if (!resumes) {
    Vocabularies vocabularies = build_vocabularies(
        config.data, [&](FunctionRef<void(const ParallelText&)> take) { return text.read_train(take); });
    require_room_in_header(vocabularies.source, vocabularies.target);
    checkpoint.model = std::make_unique<TranslationModel>(config, std::move(vocabularies.source),
                                                          std::move(vocabularies.target), registry);
    require_room_for_model(*checkpoint.model, registry);
    if (!config.training.warm_start.empty()) {
      warm_report = warm_start(*checkpoint.model, config.training.warm_start, registry);
    }
  }
  TranslationModel& model = *checkpoint.model;
  const Index longest = std::min(config.data.max_length, model.longest_sentence());
  TrainingText training = encode_training_text(model, text, longest, cache_folder(config.data, folder));
  EncodedCorpus& train = training.encoded;
  EncodedCorpus valid = encode_text(model, valid_text, model.longest_sentence(), "the validation text");
  const std::uint64_t hash = content_hash(train.corpus) ^ (content_hash(valid.corpus) << 1);
  if (resumes && checkpoint.state.data_hash != hash) {
    throw DataError(
        fmt::format("{}: the text does not give the tokens that this run began with; restore it, or use --fresh to "
                    "start anew",
                    folder.string()));
  }
  checkpoint.state.data_hash = hash;
  checkpoint.state.held_out_hash = text.held_out_hash();
  ParallelText valid_lines = first_lines(valid_text, config.training.validation_sentences);
  ParallelText train_text;
  std::function<Corpus(Index)> train_in_epoch;
  if (config.data.subword_sampling > 0) {
    train_text = text.split("train");
    train_in_epoch = EpochEncoder(model, train_text, train.corpus.line, longest);
  }
  require_files_unchanged(config.data, checkpoint.state.file_hashes);

  if (!config.training.memory.empty() && !resumes) {
    config.training.batch_tokens = batch_tokens_within(model, train.corpus, valid.corpus,
                                                       parse_bytes(config.training.memory).value(), valid_lines.target);
    model.set_training(config.training);
    choices.push_back(fmt::format("memory budget    {}: training.batch_tokens {}", config.training.memory,
                                  config.training.batch_tokens));
  }
  model.parameters().allocate();  // they fit
  const ResidentMemory resident = settled_memory();
  const MemoryRoom room = memory_room();
  const MemoryForecast forecast = forecast_memory(model, train.corpus, valid.corpus, valid_lines, room);
  try {
    require_room(forecast, config, room);
  } catch (const ConfigError& error) {
    if (!resumes) throw;
    throw ConfigError(
        fmt::format("{}; the run in {} keeps its configuration, so free memory for it, or begin another with that and "
                    "--run or --fresh",
                    error.what(), folder.string()));
  }
  double validation_seconds = 0;
  if (config.training.minutes > 0) {
    validation_seconds = measure_validation(model, valid.corpus, valid_lines);
    if (!resumes) {
      choices.push_back(
          choose_steps(model, config, train.corpus, measure_epoch(model, train_in_epoch), validation_seconds, began));
    }
  }

  // Nothing was written up to here: a mistake in what was given leaves no trace and costs no earlier run.
  if (lock) lock->require_held();
  make_run_folder(folder);
  if (!lock) {
    lock.emplace(folder);
    require_files_of_run(folder, fresh);
    if (is_there(last)) {
      throw DataError(fmt::format("{}: another weft train began there meanwhile; the same command goes on from it",
                                  folder.string()));
    }
    if (!fresh) {  // it may have been made meanwhile
      require_no_results(folder, config, registry);
      require_no_other_files(folder, config, config_file, text);
    }
  }
  if (!resumes) {
    try {
      text.stage_task(folder);  // may fail, and then costs no earlier run
    } catch (const Error&) {
      lock->require_held();  // which may be why
      throw;
    }
    lock->require_held();
    clean_run_folder(folder, {}, fresh, config_file);
    text.place_task(folder);
    write_config(folder / "config.json", config, config_file, *lock, progress);
  }
  lock->require_held();
  keep_cache(training, config.data, progress);
  lock->require_held();
  mend_best(folder, checkpoint.state, false, progress);
  progress.line("training text    " + train.report.summary());
  progress.line("validation text  " + valid.report.summary());
  if (!resumes) {
    for (const std::string& line : small_vocabulary_warnings(model)) progress.line(line);
  }
  Trainer trainer(model, checkpoint.state,
                  {std::move(train.corpus), std::move(valid.corpus), std::move(valid_lines), std::move(train_in_epoch),
                   [&](std::span<const Index> pairs) { return text.train_places(pairs, folder / "data"); },
                   [&] { lock->require_held(); }},
                  folder, progress);
  if (resumes) {
    lock->require_held();
    clean_run_folder(folder, kept_steps(checkpoint.state.validations, config.training), false);
  }
  progress.line(fmt::format("vocabulary       {} source, {} target tokens",
                            format_count(model.source_vocabulary().size()),
                            format_count(model.target_vocabulary().size())));
  progress.line(fmt::format("parameters       {}", format_count(model.parameters().count())));
  for (const std::string& line : warm_report) progress.line(line);
  for (const std::string& line : choices) progress.line(line);
  progress.line(fmt::format("batches          {} an epoch, {} tokens an epoch, {} updates in all",
                            format_count(trainer.batches_per_epoch()), format_count(trainer.tokens_per_epoch()),
                            format_count(config.training.steps)));
  progress.line(fmt::format("expected memory  {} at its peak; {} {}", format_bytes(expected_peak(forecast, resident)),
                            format_bytes(room.bytes), room.limit));
  if (resumes) progress.line(fmt::format("going on after step {} of {}", checkpoint.state.step, last.string()));

  if (config.training.minutes > 0) {
    trainer.end_within(60 * config.training.minutes, validation_seconds, now() - began);
  }
  const volatile int& stop_signal = note_stop_signals();
  const TrainingEnd end = trainer.run(stop_signal);
  progress.finish();
  if (end == TrainingEnd::kStopped) {
    const std::string saved = trainer.saved() ? "saved in " + show_controls(last.string()) : "which is not saved";
    progress.line(fmt::format("stopped after step {}, {}; the same command goes on: {}", trainer.state().step, saved,
                              same_command(arguments)));
    if (progress.error() != 0) warn(lost_lines(progress, "what was trained is saved"));
    return 128 + stop_signal;
  }
  const fs::path best = folder / "best.safetensors";
  if (const std::string repairs = repair_text(trainer.state()); !repairs.empty()) progress.line(repairs);
  if (const std::string why = end_reason(end, trainer.state(), config.training); !why.empty()) {
    progress.line(fmt::format("ended at step {}{}", trainer.state().step, why));
  }
  progress.line(fmt::format("done in {}; best checkpoint: {} (step {}, {} {:.4g})",
                            format_duration(trainer.elapsed_seconds()), show_controls(best.string()),
                            trainer.state().best_step, config.training.best_metric,
                            best_score(trainer.state(), config.training.best_metric)));
  progress.line(fmt::format("next: {0} evaluate {1}, or: {0} translate {1}", program_name(), shell_path(best)));
  return finished(progress);
}

}  // namespace

Command train_command() {
  return {
      {"train",
       "CONFIG",
       "Train a model as a configuration says. The same command again goes on where the run stopped; Ctrl-C, SIGTERM "
       "and SIGHUP save first.",
       {{"set", "KEY=VALUE", "Override a key of the configuration; may be repeated."},
        {"minutes", "M",
         "Fit the run into M minutes: measure the speed, choose the number of steps, end by the clock in any case."},
        {"from", "CHECKPOINT",
         "Begin a new run with the parameters of a checkpoint, as far as they fit, and report which do not."},
        {"run", "DIR", "Run folder; runs/<name of CONFIG> unless given."},
        {"fresh", "", "Start anew, replacing what the run folder holds."},
        {"threads", "N", "Threads to compute with; 0 for one on each core. Results do not depend on it."},
        {"quiet", "", "Print errors only."}},
       {"weft train configs/fr-en.json", "weft train configs/copy.json --set model.d_model=64 --run runs/small"}},
      train};
}

}  // namespace weft

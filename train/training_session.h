// A session of weft train: from a configuration to checkpoints in a run folder, in an order in which nothing is written
// before all that was given has been found good.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/core/clock.h"
#include "weft/nn/registry.h"
#include "weft/train/arguments.h"
#include "weft/train/checkpoint.h"
#include "weft/train/progress.h"
#include "weft/train/run_data.h"
#include "weft/train/run_folder.h"
#include "weft/train/trainer.h"
#include "weft/train/training_text.h"

namespace weft {

/// One session of a run, which it begins or goes on with. Nothing is written before take_folder(): a mistake in what was
/// given leaves no trace and costs no earlier run.
class TrainingSession {
 public:
  /// A session in the run folder that the arguments name, of weft train, with `config`, which is fit for training.
  TrainingSession(const Arguments& arguments, Config config, const Registry& registry);

  /// Begins the run or goes on with it, and trains until it is over or a signal stops it; progress goes to standard output.
  /// Returns the exit code of the command. Throws Error for all that cannot be, in one line for the user.
  int run();

 private:
  // In the order of run(). A number that is returned is the exit code.
  void require_output_apart() const;
  void hold_folder();
  void load_run();
  void tidy_run();
  int tidy_ended_run(TrainingEnd end);
  void read_text();
  void make_model();
  void encode();
  void fit_into_memory();
  void fit_into_time();
  void take_folder();
  void begin_run();
  int train();
  void print_beginning(const Trainer& trainer);
  int stopped(const Trainer& trainer, int signal);
  int ended(const Trainer& trainer, TrainingEnd end);

  const double began_ = now();
  const Arguments& arguments_;
  const Registry& registry_;
  const std::filesystem::path config_file_;
  Config config_;
  const std::filesystem::path folder_, last_;
  const bool fresh_;
  bool resumes_ = false;
  Progress progress_;
  std::optional<FolderLock> lock_;
  Checkpoint checkpoint_;  // the model and where it stands
  std::optional<RunText> text_;
  ParallelText valid_text_;
  ParallelText valid_lines_;  // those of it that validations translate
  ParallelText train_text_;   // that subwords are drawn for
  TrainingText training_;
  EncodedCorpus valid_;
  std::function<Corpus(Index)> train_in_epoch_;
  std::vector<std::string> notes_;  // for the beginning of a new run: what was taken over and chosen
  std::string memory_note_;
  double validation_seconds_ = 0;
};

}  // namespace weft

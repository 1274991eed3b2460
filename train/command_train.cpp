// weft train: from a configuration to checkpoints in a run folder.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "weft/train/commands.h"
#include "weft/train/config_table.h"
#include "weft/train/training_session.h"

namespace weft {
namespace {

/// The overrides of the configuration, those with an option of their own last.
std::vector<std::string> overrides(const Arguments& arguments) {
  std::vector<std::string> all = arguments.all("set");
  if (arguments.has("minutes")) {
    all.push_back(fmt::format("training.minutes={}", arguments.number("minutes", 0, kMostMinutes)));
  }
  if (arguments.has("from")) all.push_back("training.warm_start=" + arguments.text("from"));
  return all;
}

int train(const Arguments& arguments, const Registry& registry) {
  Config config = load_config(arguments.only_positional(), overrides(arguments));
  require_training_data(config);
  check_options(config.model, registry);
  use_threads(arguments, config.training.threads);
  return TrainingSession(arguments, std::move(config), registry).run();
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

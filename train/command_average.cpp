// weft average: one checkpoint from the mean of several.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/folder.h"
#include "weft/train/average.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/output_file.h"
#include "weft/train/run_files.h"
#include "weft/train/run_folder.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Whether there is a file; none at the end of a link that leads to nothing.
bool has_file(const fs::path& path) { return lost_link(path).empty() && is_there(path); }

int average(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();
  fs::path output;
  std::vector<fs::path> paths;
  const bool of_run = arguments.has("run"), best = arguments.has("best");
  Index count = 0;
  if (of_run) {
    if (!words.empty())
      arguments.refuse(fmt::format("--run chooses the checkpoints, \"{}\" is one too many", words[0]));
    if (best == arguments.has("last")) arguments.refuse("--run needs one of --best and --last");
    output = arguments.text("output");
    count = arguments.whole(best ? "best" : "last", 1, 1);
    paths = validation_checkpoints(arguments.text("run"), best, count, registry);
  } else {
    for (const char* option : {"best", "last", "output"}) {
      if (arguments.has(option)) arguments.refuse(fmt::format("--{} goes with --run only", option));
    }
    if (words.size() < 2) {
      arguments.refuse(fmt::format("expected OUT and at least one CHECKPOINT, found {} of these", words.size()));
    }
    output = words[0];
    // A forgotten OUT must not cost a checkpoint.
    if (has_file(output)) arguments.refuse(fmt::format("{} exists; name a new file first", output.string()));
    paths.assign(words.begin() + 1, words.end());
  }
  // Through links, and in the folder of any run.
  const bool is_old = has_file(output);
  const auto is_of_a_run = [&](const fs::path& path) {
    const fs::path folder = path.parent_path();
    return is_run_checkpoint(path) &&
           (is_old || has_file(folder / "last.safetensors") || has_file(folder / "log.jsonl"));
  };
  if (is_file_of_run(output) || is_of_a_run(output) || is_of_a_run(end_of_links(output)) ||
      (is_old && !is_whole(output))) {
    arguments.refuse(fmt::format("{} is not an average that could be made anew; name another file", output.string()));
  }
  require_not_protected(output, output.string());
  if (is_old &&
      !model_difference(*load_checkpoint(output, registry).model, *load_checkpoint(paths.back(), registry).model)
           .empty()) {
    arguments.refuse(fmt::format("{} is a checkpoint of another model; name another file", output.string()));
  }
  const auto names = [&paths] {
    std::vector<std::string> all;
    for (const fs::path& path : paths) all.push_back(path.string());
    return all;
  };
  require_not_printed_to(names());
  if (of_run) require_not_printed_to(files_of_run(arguments.text("run")));
  Checkpoint result;
  if (of_run) {  // which may have gone on since
    RunAverage average = average_run(arguments.text("run"), best, count, registry);
    result = std::move(average.checkpoint);
    paths = std::move(average.paths);
  } else {
    result = average_checkpoints(paths, registry);
  }
  require_not_printed_to(all_files(result.model->config().data));
  save_checkpoint(output, *result.model, result.state, nullptr);
  print(show_controls(fmt::format("{}: the average of {}", output.string(), fmt::join(names(), ", "))) + "\n");
  return 0;
}

}  // namespace

Command average_command() {
  return {
      {"average",
       "OUT CHECKPOINT...",
       "Average the parameters of checkpoints of one model. The rest of OUT is that of the last CHECKPOINT, without "
       "the optimizer's state. With --run, average what a run has kept (training.keep_best, training.keep_last).",
       {{"run", "DIR", "Choose checkpoints of this run folder, in the place of OUT and CHECKPOINT."},
        {"best", "N", "The N best validations, by training.best_metric."},
        {"last", "N", "The last N validations."},
        {"output", "FILE", "What to write with --run; it may exist."}},
       {"weft average average.safetensors runs/a/step-400.safetensors runs/a/step-600.safetensors",
        "weft average --run runs/a --best 3 --output runs/a/average.safetensors"}},
      average};
}

}  // namespace weft

// weft plot: learning curves of training runs as a picture.
#include <fmt/format.h>

#include <filesystem>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/train/commands.h"
#include "weft/train/learning_curve.h"
#include "weft/train/output_file.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

int plot(const Arguments& arguments, const Registry&) {
  if (arguments.positional().empty()) arguments.only_positional();  // says what is missing
  const std::string output = arguments.text("output", "");
  std::vector<CurveRun> runs;
  std::vector<std::string> logs;
  for (const std::string& given : arguments.positional()) {
    fs::path log = given;
    std::error_code error;
    if (fs::is_directory(log, error)) log /= "log.jsonl";
    if (!is_there(log)) {
      throw DataError(fmt::format("{}: no such log; give the folder of a training run", log.string()));
    }
    if (log.extension() == ".safetensors") {
      throw DataError(fmt::format("{}: is a checkpoint, not a log; give the folder of its run", log.string()));
    }
    logs.push_back(log.string());
    runs.push_back({given, read_run_log(log.string())});
  }
  require_outputs(arguments, {"output"}, logs);
  const std::string by = arguments.text("by", "time");
  if (by != "time" && by != "step") throw ConfigError(fmt::format("--by is \"{}\"; must be time or step", by));
  const CurveOptions options{arguments.text("title", "Learning curve"), arguments.text("metric", "bleu"), by == "time"};
  const std::string svg = learning_curve_svg(runs, options);
  write_output(output, [&](PutText put) { put(svg); });
  return 0;
}

}  // namespace

Command plot_command() {
  return {{"plot",
           "RUN...",
           "Draw the learning curves of training runs as an SVG picture: loss, and a score of the validations.",
           {{"output", "FILE.svg", "Where the picture goes; standard output unless given."},
            {"metric", "NAME",
             "Score to draw: bleu (unless given), chrf, loss, perplexity, token_accuracy or exact_match."},
            {"by", "time|step", "What goes along the bottom: minutes of training (unless given), or updates."},
            {"title", "TEXT", "Title of the picture."}},
           {"weft plot runs/fr-en --output curve.svg", "weft plot runs/fr-en runs/narrow --by step --metric loss"}},
          plot};
}

}  // namespace weft

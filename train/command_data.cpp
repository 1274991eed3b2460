// weft data: the text of the toy tasks as files, a look at the text of a configuration before training, and the pairs of it
// that are not trained on.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/data/toy.h"
#include "weft/train/commands.h"
#include "weft/train/data_check.h"
#include "weft/train/output_file.h"
#include "weft/train/run_data.h"
#include "weft/train/run_files.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Refuses options that belong to the other use of the verb.
void require_without(const Arguments& arguments, const std::string& use, const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (arguments.has(option)) {
      arguments.refuse(fmt::format("--{} is not for data {}", option, use));
    }
  }
}

void print_splits(const std::vector<std::pair<std::string, ParallelText>>& splits, const std::string& folder) {
  for (const auto& [name, text] : splits) {
    const auto pairs = static_cast<Index>(text.source.size());
    print(fmt::format("{}/{}.src, .trg: {} pairs\n", show_controls(folder), name, format_count(pairs)));
  }
}

/// Throws ConfigError if texts in this folder are those of a run, folders, protected, or one of the inputs: before any is
/// written.
void require_replaceable(const std::vector<std::pair<std::string, ParallelText>>& splits, const fs::path& folder,
                         const std::vector<std::string>& inputs) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(folder, error);
  if (!whole.has_filename()) whole = whole.parent_path();  // of "data/"
  const fs::path run = whole.parent_path();
  if (whole.filename() == "data" && (is_there(run / "log.jsonl") || is_there(run / "last.safetensors"))) {
    throw ConfigError(fmt::format("--output {}: holds the text of a run; name another folder", folder.string()));
  }
  for (const auto& [name, text] : splits) {
    for (const char* side : {".src", ".trg"}) {
      const fs::path file = folder / (name + side);
      for (const std::string& input : inputs) {
        if (!is_same_file(file, input)) continue;
        throw ConfigError(fmt::format("data split: {} would be replaced; name another folder with --output", input));
      }
      if (fs::is_directory(file, error)) {
        throw ConfigError(fmt::format("{}: is a folder; name another one with --output", file.string()));
      }
      const bool any = fs::symlink_status(file, error).type() != fs::file_type::not_found;  // a link to nothing too
      if (any) require_not_protected(file, file.string());
    }
  }
}

/// The configuration and the texts that it names, none of which standard output may be.
std::vector<std::string> inputs_of(const Arguments& arguments, const Config& config) {
  std::vector<std::string> inputs = all_files(config.data);
  inputs.push_back(arguments.positional()[1]);
  require_not_printed_to(inputs);
  return inputs;
}

int data_make(const Arguments& arguments) {
  require_without(arguments, "make", {"set", "json", "limit", "threads"});
  const std::string output = arguments.text("output");
  const auto pairs = arguments.has("pairs") ? std::optional<Index>(arguments.whole("pairs", 0, 1)) : std::nullopt;
  const auto splits =
      make_toy(arguments.positional()[1], pairs, static_cast<std::uint64_t>(arguments.whole("seed", 1, 0)));
  require_replaceable(splits, output, {});
  write_toy(splits, output);
  print_splits(splits, output);
  return 0;
}

int data_check(const Arguments& arguments, const Registry& registry) {
  require_without(arguments, "check", {"output", "pairs", "seed"});
  const Index limit = arguments.whole("limit", 3, 1, 1'000'000);
  const Config config = load_config(arguments.positional()[1], arguments.all("set"));
  require_training_data(config);
  check_options(config.model, registry);
  use_threads(arguments, config.training.threads);
  inputs_of(arguments, config);
  const DataReport report = check_data(config, limit);
  print(arguments.has("json") ? report_json(report) : format_report(report));
  return report.problems.empty() ? 0 : 2;
}

int data_split(const Arguments& arguments) {
  require_without(arguments, "split", {"json", "limit", "pairs", "seed"});
  const std::string output = arguments.text("output");
  const Config config = load_config(arguments.positional()[1], arguments.all("set"));
  require_training_data(config);
  use_threads(arguments, config.training.threads);
  const std::vector<std::string> inputs = inputs_of(arguments, config);
  const RunText text(config.data);
  std::vector<std::pair<std::string, ParallelText>> splits{{"valid", text.split("valid")}};
  if (text.is_task() || config.data.hold_out_test > 0 || !text_files(config.data, "test").empty()) {
    splits.emplace_back("test", text.split("test"));
  }
  require_replaceable(splits, output, inputs);
  write_toy(splits, output);
  print_splits(splits, output);
  return 0;
}

int data(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();
  if (words[0] == "make") return data_make(arguments);
  require_not_printed_to({words[1]});
  if (words[0] == "check") return data_check(arguments, registry);
  return data_split(arguments);
}

}  // namespace

Command data_command() {
  return {
      {"data",
       "make TASK | check CONFIG | split CONFIG",
       "Write the text of a toy task (make), report on the text of a configuration before training (check), or write "
       "the "
       "pairs that it validates and tests with, those that it holds out too, for others to score (split). The "
       "tasks are fr-en, copy, reverse and sort; the same seed gives the same bytes everywhere. The report says what "
       "would be kept and dropped, how long the sentences are, and what is odd, with file and line; it reads all text "
       "whatever it finds, and exits with 2 if training would be refused.",
       {{"output", "DIR", "make and split: folder for train, valid and test, each as .src and .trg; made if missing."},
        {"pairs", "N", "make: training pairs; the task's own number unless given."},
        {"seed", "S", "make: which text; 1 unless given."},
        {"set", "KEY=VALUE", "check and split: override a key of the configuration; may be repeated."},
        {"limit", "N", "check: places shown of each finding; 3 unless given."},
        {"json", "", "check: print JSON."},
        {"threads", "N", "check and split: threads to compute with; 0 for one on each core."}},
       {"weft data make fr-en --output runs/text/fr-en",
        "weft data make reverse --output runs/text/reverse --pairs 20000 --seed 7", "weft data check my.json",
        "weft data check my.json --set data.max_length=100 --limit 10 --json",
        "weft data split my.json --output held-out"}},
      data};
}

}  // namespace weft

// weft bench: how fast this machine trains and decodes a model, against what it could do at best.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/core/flops.h"
#include "weft/core/folder.h"
#include "weft/core/threads.h"
#include "weft/train/bench_batches.h"
#include "weft/train/bench_decode.h"
#include "weft/train/bench_export.h"
#include "weft/train/bench_products.h"
#include "weft/train/bench_step.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/output_file.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

/// The profile as a table, in milliseconds and shares of a step.
std::string format_profile(const BenchStepResult& result) {
  std::vector<std::vector<std::string>> rows{{"operation", "calls", "forward", "backward", "share"}};
  double all = 0;
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f} ms", 1e3 * seconds); };
  const auto row = [&](const std::string& name, const std::string& calls, double forward, double backward) {
    rows.push_back({name, calls, milliseconds(forward), milliseconds(backward),
                    fmt::format("{:.1f} %", 100 * (forward + backward) / result.step_seconds)});
  };
  for (const OpProfile::Row& one : result.profile) {
    row(one.name, fmt::format("{:.0f}", one.calls), one.forward, one.backward);
    all += one.forward + one.backward;
  }
  row("rest", "", std::max(0.0, result.step_seconds - all), 0);
  return format_table(rows, "lrrrr");
}

std::string format_result(const BenchStepResult& result, Index parameters) {
  return format_table(
             {{"parameters", format_count(parameters)},
              {"threads", format_count(threads())},
              {"target tokens a step", fmt::format("{:.0f}", result.target_tokens)},
              {"time of a step", fmt::format("{:.2f} ms", 1e3 * result.step_seconds)},
              {"target tokens a second", format_count(static_cast<Index>(result.tokens_per_second()))},
              {"arithmetic of a step", fmt::format("{:.2f} GFLOP in matrix products", result.step_flops / 1e9)},
              {"speed", fmt::format("{:.1f} GFLOP/s", result.flops_per_second() / 1e9)},
              {"peak of this machine", fmt::format("{:.1f} GFLOP/s", result.peak_flops / 1e9)},
              {"share of the peak", fmt::format("{:.1f} %", 100 * result.share_of_peak())},
              {"tensor memory", fmt::format("{} at most", format_bytes(result.peak_bytes))},
              {"resident memory", fmt::format("{} at most", format_bytes(result.peak_resident_bytes))},
              {"heap allocations a step", fmt::format("{:.0f} for tensors", result.heap_allocations)}}) +
         (result.profile.empty() ? "" : fmt::format("\n{}", format_profile(result)));
}

Json to_json(const BenchStepResult& result, Index parameters) {
  Json json{{"parameters", parameters},
            {"threads", threads()},
            {"batches", result.batches},
            {"target_tokens", result.target_tokens},
            {"step_seconds", result.step_seconds},
            {"target_tokens_per_second", result.tokens_per_second()},
            {"gflop_per_step", result.step_flops / 1e9},
            {"gflops", result.flops_per_second() / 1e9},
            {"peak_gflops", result.peak_flops / 1e9},
            {"share_of_peak", result.share_of_peak()},
            {"peak_bytes", result.peak_bytes},
            {"peak_resident_bytes", result.peak_resident_bytes},
            {"heap_allocations_per_step", result.heap_allocations}};
  for (const OpProfile::Row& row : result.profile) {
    json["profile"].push_back({{"operation", row.name},
                               {"calls", row.calls},
                               {"forward_seconds", row.forward},
                               {"backward_seconds", row.backward}});
  }
  return json;
}

int bench_step_command(const Config& config, const Arguments& arguments, const Registry& registry) {
  const auto model = make_bench_model(config, registry);
  if (arguments.has("export")) {
    export_bench_step(*model, arguments.text("export"));
    return 0;
  }
  BenchStepOptions options;
  options.rounds = arguments.whole("rounds", options.rounds, 1, 10000);
  options.profile = arguments.has("profile");
  const BenchStepResult result = bench_step(*model, options);
  const Index parameters = model->parameters().count();
  print(arguments.has("json") ? to_json(result, parameters).dump(2).append("\n") : format_result(result, parameters));
  return 0;
}

int bench_decode_command(const Config& config, const Arguments& arguments, const Registry& registry) {
  const auto model = make_bench_model(config, registry);
  DecodeBenchOptions options;
  options.length = bench_decode_length(config);
  if (arguments.has("export")) {
    export_bench_decode(*model, options, arguments.text("export"));
    return 0;
  }
  options.rounds = arguments.whole("rounds", options.rounds, 1, 10000);
  Json json{{"parameters", model->parameters().count()},
            {"threads", threads()},
            {"length", options.length},
            {"results", Json::array()}};
  std::vector<std::vector<std::string>> rows{{"beam", "batch", "tokens a second", "time of a sentence"}};
  for (const DecodeBenchResult& one : bench_decode(model->transformer(), options)) {
    json["results"].push_back({{"beam", one.beam},
                               {"batch", one.batch},
                               {"tokens_per_second", one.tokens_per_second},
                               {"tokens", one.tokens},
                               {"seconds", one.seconds}});
    const double sentences = static_cast<double>(one.tokens) / static_cast<double>(options.length + 1);
    rows.push_back({one.beam == 1 ? "1 (greedy)" : fmt::format("{}", one.beam), format_count(one.batch),
                    format_count(static_cast<Index>(one.tokens_per_second)),
                    fmt::format("{:.2f} ms", 1e3 * one.seconds / sentences)});
  }
  print(arguments.has("json") ? json.dump(2).append("\n")
                              : fmt::format("{} parameters, {} threads, sentences of {} tokens\n\n",
                                            format_count(model->parameters().count()), threads(), options.length) +
                                    format_table(rows, "lrrr"));
  return 0;
}

int bench_products_command(const Config& config, const Arguments& arguments) {
  constexpr double kPeakSeconds = 0.3;
  double peak = measure_peak_flops(kPeakSeconds);
  const std::vector<ProductBenchResult> results = bench_products(config);
  peak = std::max(peak, measure_peak_flops(kPeakSeconds));
  Json json{{"threads", threads()}, {"peak_gflops", peak / 1e9}, {"products", Json::array()}};
  std::vector<std::vector<std::string>> rows{{"layer", "rows", "out", "in", "x W^T", "dy W", "dy^T x"}};
  const auto share = [&](double speed) { return fmt::format("{:.0f} %", 100 * speed / peak); };
  for (const ProductBenchResult& one : results) {
    json["products"].push_back({{"layer", one.name},
                                {"rows", one.rows},
                                {"out", one.out},
                                {"in", one.in},
                                {"forward_gflops", one.forward / 1e9},
                                {"backward_x_gflops", one.backward_x / 1e9},
                                {"backward_weight_gflops", one.backward_weight / 1e9}});
    rows.push_back({one.name, format_count(one.rows), format_count(one.out), format_count(one.in), share(one.forward),
                    share(one.backward_x), share(one.backward_weight)});
  }
  print(arguments.has("json") ? json.dump(2).append("\n")
                              : fmt::format("shares of the peak of {} threads, {:.1f} GFLOP/s\n\n{}", threads(),
                                            peak / 1e9, format_table(rows, "lrrrrrr")));
  return 0;
}

/// Throws ConfigError if an export to a folder would replace what is none.
void require_exportable(const std::filesystem::path& folder, const std::string& config) {
  for (const char* file : {"work.json", "decode.json"}) {
    if (!is_same_file(folder / file, config)) continue;
    throw ConfigError(fmt::format("bench: {} would be replaced; choose another folder with --export", config));
  }
  const std::filesystem::path model = folder / "model.safetensors";
  if (!lost_link(model).empty() || !is_there(model)) return;
  try {
    if (load_state(model).step == 0) return;  // never trained
  } catch (const CheckpointError&) {
  }
  throw ConfigError(
      fmt::format("{}: is no export of bench, but perhaps the checkpoint of a run or an average; choose "
                  "another folder with --export",
                  model.string()));
}

int bench(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();
  require_not_printed_to({words[1]});
  std::vector<std::string> overrides = arguments.all("set");
  if (arguments.has("lengths")) overrides.push_back("bench.lengths=" + arguments.text("lengths"));
  const Config config = load_config(words[1], overrides);
  use_threads(arguments, config.training.threads);
  if (arguments.has("export")) require_exportable(arguments.text("export"), words[1]);
  if (words[0] == "step") return bench_step_command(config, arguments, registry);
  if (arguments.has("profile")) arguments.refuse("--profile is for step alone");
  if (words[0] == "decode") return bench_decode_command(config, arguments, registry);
  for (const char* option : {"export", "rounds"}) {
    if (arguments.has(option)) {
      arguments.refuse(fmt::format("--{} is for step and decode", option));
    }
  }
  return bench_products_command(config, arguments);
}

}  // namespace

Command bench_command() {
  return {
      {"bench",
       "step CONFIG | decode CONFIG | products CONFIG",
       "Measure how fast a model trains (step), decodes, or multiplies its matrices on this machine. The text is made "
       "up; the section \"bench\" of the configuration says how much of it.",
       {{"lengths", "LENGTHS", "Lengths of the sentences: uniform:N or realistic; overrides bench.lengths."},
        {"rounds", "N", "Times to measure; the median counts. 10 for step, 5 for decode unless given."},
        {"profile", "", "step: show where the time goes, by operation."},
        {"export", "FOLDER",
         "Measure nothing; write the weights and the work there, so that another program can do the same."},
        {"set", "KEY=VALUE", "Override a key; may be repeated."},
        {"threads", "N", "Threads to compute with; 0 for one on each core."},
        {"json", "", "Print JSON."}},
       {"weft bench step configs/bench/small.json --profile", "weft bench products configs/bench/small.json",
        "weft bench step configs/bench/small.json --lengths uniform:512 --json",
        "weft bench decode configs/bench/base.json"}},
      bench};
}

}  // namespace weft

// weft bench: how fast this machine trains and decodes a model, against what it could do at best.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"
#include "weft/core/threads.h"
#include "weft/train/bench_step.h"
#include "weft/train/commands.h"
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
  return "\n" + format_table(rows, "lrrrr");
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
         (result.profile.empty() ? "" : format_profile(result));
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

int bench(const Arguments& arguments, const Registry& registry) {
  const auto& words = arguments.positional();
  if (words.size() != 2 || words[0] != "step") {
    throw ConfigError(fmt::format("bench: expected \"step CONFIG\"{}; see weft bench --help",
                                  words.empty() ? "" : suggestion(words[0], {"step"})));
  }
  std::vector<std::string> overrides = arguments.all("set");
  if (arguments.has("lengths")) overrides.push_back("bench.lengths=" + arguments.text("lengths"));
  const Config config = load_config(words[1], overrides);
  use_threads(arguments, config.training.threads);
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
  print(arguments.has("json") ? to_json(result, parameters).dump(2) + "\n" : format_result(result, parameters));
  return 0;
}

}  // namespace

Command bench_command() {
  return {{"bench",
           "step CONFIG",
           "Measure how fast a model trains on this machine, on made-up text (see the section \"bench\" of a "
           "configuration).",
           {{"lengths", "LENGTHS", "Lengths of the sentences: uniform:N or realistic; overrides bench.lengths."},
            {"rounds", "N", "Times that half a second or more is measured; the median counts. 10 unless given."},
            {"profile", "", "Show where the time goes, by operation."},
            {"export", "FOLDER",
             "Measure nothing; write the weights and the batches there, so that another program can do the same work."},
            {"set", "KEY=VALUE", "Override a key; may be repeated."},
            {"threads", "N", "Threads to compute with; 0 for one on each core."},
            {"json", "", "Print JSON."}},
           {"weft bench step configs/bench/small.json --profile",
            "weft bench step configs/bench/small.json --lengths uniform:512 --json"}},
          bench};
}

}  // namespace weft

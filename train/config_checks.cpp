// The rules about several keys of a configuration.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/train/bench_batches.h"
#include "weft/train/config_rules.h"
#include "weft/train/config_table.h"
#include "weft/train/memory_budget.h"

namespace weft {
namespace {

/// One text, one way to name it: two files, a list, or pairs held out of the training text.
void add_split_check(std::vector<ConfigCheck>& checks, const std::string& split,
                     std::vector<TextFiles> DataConfig::*list, std::string DataConfig::*source,
                     std::string DataConfig::*target, Index DataConfig::*held_out) {
  std::vector<std::string> keys{"data." + split, fmt::format("data.{}_source", split),
                                fmt::format("data.{}_target", split)};
  if (held_out != nullptr) keys.push_back("data.hold_out_" + split);
  checks.push_back({std::move(keys), [=](const Config& c) -> std::string {
                      const bool listed = !(c.data.*list).empty();
                      const bool pair = !((c.data.*source) + (c.data.*target)).empty();
                      if (listed && pair) {
                        return fmt::format(
                            "data.{0} and data.{0}_source or data.{0}_target name the same text; leave out one", split);
                      }
                      if (held_out == nullptr || c.data.*held_out == 0 || !(listed || pair)) return "";
                      return fmt::format(
                          "data.hold_out_{0} is {1} and data also names a {0} text; leave out one of the two", split,
                          c.data.*held_out);
                    }});
}

}  // namespace

std::vector<ConfigCheck> config_checks() {
  std::vector<ConfigCheck> checks;
  const auto check = [&](std::vector<std::string> keys, std::function<std::string(const Config&)> problem) {
    checks.push_back({std::move(keys), std::move(problem)});
  };
  check({"model.d_model", "model.heads"}, [](const Config& c) -> std::string {
    if (c.model.d_model % c.model.heads == 0) return "";
    return fmt::format("model.d_model ({}) must be a multiple of model.heads ({})", c.model.d_model, c.model.heads);
  });
  check({"model.d_model", "model.max_length"}, [](const Config& c) -> std::string {
    constexpr Index kMost = Index{1} << 24;  // of a table that is made whole when the model is
    if (c.model.max_length * c.model.d_model <= kMost) return "";
    return fmt::format("model.max_length ({}) times model.d_model ({}) must be at most {}", c.model.max_length,
                       c.model.d_model, kMost);
  });
  check({"model.tied_embeddings", "data.shared_vocabulary"}, [](const Config& c) -> std::string {
    if (c.model.tied_embeddings != "all" || c.data.shared_vocabulary) return "";
    return "model.tied_embeddings is \"all\"; this needs data.shared_vocabulary to be true";
  });
  check({"data.subword_model", "data.shared_vocabulary"}, [](const Config& c) -> std::string {
    if (c.data.subword_model.empty() || c.data.shared_vocabulary) return "";
    return "data.subword_model is for both sides; set data.shared_vocabulary to true, or name "
           "data.source_subword_model "
           "and data.target_subword_model";
  });
  check({"data.source_subword_model", "data.target_subword_model", "data.shared_vocabulary"},
        [](const Config& c) -> std::string {
          const bool separate = !c.data.source_subword_model.empty() || !c.data.target_subword_model.empty();
          if (!separate || !c.data.shared_vocabulary) return "";
          return "data.shared_vocabulary is true, but a subword model of one side is named; name data.subword_model";
        });
  check({"data.max_length", "model.max_length"}, [](const Config& c) -> std::string {
    if (c.data.max_length < c.model.max_length) return "";
    return fmt::format("data.max_length ({}) must be below model.max_length ({}), to leave room for the end token",
                       c.data.max_length, c.model.max_length);
  });
  check({"model.embedding_dropout"}, [](const Config& c) -> std::string {
    const double rate = c.model.embedding_dropout;
    if (rate >= 0 || rate == -1) return "";
    return fmt::format("model.embedding_dropout is {}; must be at least 0 and below 1, or -1 for model.dropout", rate);
  });
  check({"schedule.name", "schedule.warmup_steps"}, [](const Config& c) -> std::string {
    const std::string& name = c.schedule.name;
    if ((name != "noam" && name != "inverse_sqrt") || c.schedule.warmup_steps > 0) return "";
    return fmt::format("schedule.warmup_steps is 0; must be at least 1 with schedule.name \"{}\"", name);
  });
  check({"decoding.min_length", "decoding.max_length"}, [](const Config& c) -> std::string {
    if (c.decoding.max_length == 0 || c.decoding.min_length <= c.decoding.max_length) return "";
    return fmt::format("decoding.min_length ({}) must be at most decoding.max_length ({})", c.decoding.min_length,
                       c.decoding.max_length);
  });
  check({"training.memory"}, [](const Config& c) -> std::string {
    if (c.training.memory.empty() || parse_bytes(c.training.memory)) return "";
    return fmt::format("training.memory is {}; must be a size such as \"2GiB\" or \"800MB\"",
                       show_value(c.training.memory));
  });
  check({"bench.lengths", "model.max_length"}, [](const Config& c) -> std::string {
    const auto longest = longest_bench_sentence(c.bench.lengths);
    if (!longest) {
      return fmt::format("bench.lengths is \"{}\"; must be \"realistic\" or \"uniform:\" and a length of at least 2",
                         c.bench.lengths);
    }
    // Only lengths that were chosen: a small model need not hold the default.
    if (*longest <= c.model.max_length || c.bench.lengths == "realistic") return "";
    return fmt::format("bench.lengths is \"{}\"; the model takes at most model.max_length ({}) tokens", c.bench.lengths,
                       c.model.max_length);
  });
  check({"data.task", "data.train_source", "data.train_target", "data.valid_source", "data.valid_target",
         "data.test_source", "data.test_target", "data.train", "data.valid", "data.test"},
        [](const Config& c) -> std::string {
          const DataConfig& d = c.data;
          const bool files =
              !(d.train_source + d.train_target + d.valid_source + d.valid_target + d.test_source + d.test_target)
                   .empty() ||
              !(d.train.empty() && d.valid.empty() && d.test.empty());
          if (d.task.empty() || !files) return "";
          return fmt::format("data.task is \"{}\" and data also names files; leave out one of the two", d.task);
        });
  add_split_check(checks, "train", &DataConfig::train, &DataConfig::train_source, &DataConfig::train_target, nullptr);
  add_split_check(checks, "valid", &DataConfig::valid, &DataConfig::valid_source, &DataConfig::valid_target,
                  &DataConfig::hold_out_valid);
  add_split_check(checks, "test", &DataConfig::test, &DataConfig::test_source, &DataConfig::test_target,
                  &DataConfig::hold_out_test);
  check({"data.task", "data.hold_out_valid", "data.hold_out_test", "data.cache"}, [](const Config& c) -> std::string {
    const DataConfig& d = c.data;
    if (d.task.empty() || (d.hold_out_valid == 0 && d.hold_out_test == 0 && d.cache.empty())) return "";
    return fmt::format("data.{} has no use with data.task, whose text is made in all its parts; leave it out",
                       d.hold_out_valid > 0  ? "hold_out_valid"
                       : d.hold_out_test > 0 ? "hold_out_test"
                                             : "cache");
  });
  check({"data.seed", "data.task", "data.hold_out_valid", "data.hold_out_test"}, [](const Config& c) -> std::string {
    const DataConfig& d = c.data;
    if (d.seed == DataConfig{}.seed || !d.task.empty() || d.hold_out_valid + d.hold_out_test > 0) return "";
    return fmt::format(
        "data.seed is {}, but is used only with data.task, data.hold_out_valid or data.hold_out_test; leave it out",
        d.seed);
  });
  return checks;
}

}  // namespace weft

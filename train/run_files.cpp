#include "weft/train/run_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/data/file_hash.h"
#include "weft/train/run_data.h"

namespace weft {

std::vector<std::string> run_files(const DataConfig& config) {
  std::vector<std::string> names;
  if (config.task.empty()) {
    for (const char* split : {"train", "valid"}) {
      for (const TextFiles& files : text_files(config, split)) {
        for (const std::string& name : files.names()) names.push_back(name);
      }
    }
  }
  for (const std::string* model : {&config.subword_model, &config.source_subword_model, &config.target_subword_model}) {
    if (!model->empty()) names.push_back(*model);
  }
  return names;
}

std::vector<std::string> all_files(const DataConfig& config) {
  std::vector<std::string> names = run_files(config);
  if (!config.task.empty()) return names;
  for (const TextFiles& files : text_files(config, "test")) {
    for (const std::string& name : files.names()) names.push_back(name);
  }
  return names;
}

std::vector<std::uint64_t> run_file_hashes(const DataConfig& config) {
  std::vector<std::uint64_t> hashes;
  for (const std::string& name : run_files(config)) {
    hashes.push_back(is_file(name) ? std::max<std::uint64_t>(1, file_hash(name)) : 0);
  }
  return hashes;
}

std::vector<std::string> run_differences(const Config& before, Config now) {
  now.training.threads = before.training.threads;  // these change no result
  now.data.cache = before.data.cache;
  now.training.on_divergence = before.training.on_divergence;  // these change nothing of what was done so far
  now.training.detect_anomaly = before.training.detect_anomaly;
  if (!before.training.memory.empty()) now.training.batch_tokens = before.training.batch_tokens;  // was measured
  if (before.training.minutes > 0) now.training.steps = before.training.steps;                    // was measured
  return config_differences(before, now);
}

void require_same_config(const Config& before, const Config& now, const std::string& folder) {
  const auto differences = run_differences(before, now);
  if (differences.empty()) return;
  std::string text = fmt::format("{}: the run there was made with another configuration:", folder);
  for (const std::string& difference : differences) text += "\n  " + difference;
  throw ConfigError(text + "\nuse --fresh to start anew, or --run to choose another folder");
}

namespace {

/// The names of the files that are not as they were when `before` was taken, parted by commas.
std::string changed_files(const DataConfig& config, std::span<const std::uint64_t> before) {
  if (before.empty()) return "";
  const std::vector<std::string> names = run_files(config);
  const std::vector<std::uint64_t> now = run_file_hashes(config);
  std::string changed;
  for (std::size_t i = 0; i < std::min(names.size(), before.size()); ++i) {
    if (before[i] == now[i] || before[i] == 0 || now[i] == 0) continue;
    changed += (changed.empty() ? "" : ", ") + names[i];
  }
  return changed;
}

}  // namespace

void require_same_files(const DataConfig& config, std::span<const std::uint64_t> before, const std::string& folder) {
  const std::string changed = changed_files(config, before);
  if (changed.empty()) return;
  throw DataError(fmt::format(
      "{}: changed since this run began: {}; restore what was there, or use --fresh to start anew", folder, changed));
}

void require_files_unchanged(const DataConfig& config, std::span<const std::uint64_t> before) {
  const std::string changed = changed_files(config, before);
  if (changed.empty()) return;
  throw DataError(fmt::format("{}: changed while it was read; begin again once nothing writes to it", changed));
}

}  // namespace weft

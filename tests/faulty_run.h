// Training runs whose numbers go wrong on demand, stopped at any batch, and what they leave.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "faulty_layer.h"
#include "session.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/safetensors.h"

namespace weft {

inline constexpr real kInfinity = std::numeric_limits<real>::infinity();

/// The fault of this test, gone at its end.
class Faulty {
 public:
  Faulty(Fault::Kind kind, std::function<bool(std::uint64_t, const Var&)> when,
         real value = std::numeric_limits<real>::quiet_NaN(), Index row = 0) {
    fault() = {kind, std::move(when), value, row};
  }
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;
  ~Faulty() { fault() = {}; }
};

inline auto at(std::uint64_t step) {
  return [step](std::uint64_t s, const Var&) { return s == step; };
}

inline Config faulty_config(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"model.feed_forward=faulty", "training.ema_decay=0.9", "training.keep_best=2"});
  return tiny_config(overrides);
}

inline Config with_policy(const std::string& policy, std::vector<std::string> overrides = {}) {
  overrides.push_back("training.on_divergence=" + policy);
  return faulty_config(overrides);
}

inline std::string error_of(Session& session) {
  return thrown_text<Error>([&] { session.finish(); });
}

/// Checks every number of every checkpoint of a folder, optimizer and average too, and every line of the log.
inline void check_all_finite(const std::filesystem::path& folder) {
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++checkpoints;
    CAPTURE(entry.path().string());
    const SafetensorsFile file = SafetensorsFile::open(entry.path());
    for (const SafetensorsEntry& tensor : file.entries()) {
      CAPTURE(tensor.name);
      std::vector<real> values(static_cast<std::size_t>(tensor.elements()));
      file.read(tensor.name, values);
      CHECK(first_not_finite(values) == -1);
    }
  }
  CHECK(checkpoints > 0);
  std::istringstream lines(bytes_of(folder / "log.jsonl"));
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
}

inline std::vector<EventEntry> events(const std::filesystem::path& folder) {
  return read_run_log((folder / "log.jsonl").string()).events;
}

/// The bytes of all checkpoints and the log of a run.
inline std::map<std::string, std::string> results(const std::filesystem::path& folder) {
  std::map<std::string, std::string> all{{"log", log_without_times(folder)}};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") all[entry.path().filename().string()] = bytes_of(entry.path());
  }
  return all;
}

/// Trains in a folder until `batches` batches have been seen, then stops it as a signal does, or until it is over.
inline TrainingEnd train_for(const std::filesystem::path& folder, const Config& config, int batches) {
  Session session(folder, config, faulty_layers());
  volatile int stop = 0;
  const auto when = fault().when;
  fault().when = [&](std::uint64_t step, const Var& x) {
    if (--batches == 0) stop = 1;
    return when(step, x);
  };
  const TrainingEnd end = session.trainer().run(stop);
  fault().when = when;
  return end;
}

inline void check_same(const std::filesystem::path& folder, const std::map<std::string, std::string>& expected) {
  const auto found = results(folder);
  for (const auto& result : expected) {
    const std::string& name = result.first;
    CAPTURE(name);
    REQUIRE(found.count(name) == 1);
    CHECK((found.at(name) == result.second));
  }
}

/// Checks that a run that is stopped again and again ends as the one in `straight`, never stopped.
inline void check_resumable(const Config& config, const std::filesystem::path& straight,
                            std::initializer_list<int> strides) {
  const auto expected = results(straight);
  for (const int stride : strides) {
    CAPTURE(stride);
    const TemporaryFolder folder;
    while (train_for(folder.path(), config, stride) != TrainingEnd::kDone) continue;
    check_same(folder.path(), expected);
    CHECK(results(folder.path()).size() == expected.size());
  }
}

}  // namespace weft

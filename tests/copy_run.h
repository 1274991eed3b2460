// The run of the copy task that the tests of weft train look at, stop and kill.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "cli.h"

namespace weft::cli {

inline constexpr std::size_t kCopySteps = 200;

/// A run of the copy task that takes about half a second, logs every update and saves every fifth.
inline Words copy_run(const std::string& folder) {
  workplace();
  put("copy.json", R"({
    "data": {"task": "copy", "pairs": 200, "max_length": 20},
    "model": {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 32, "max_length": 32},
    "training": {"steps": 200, "batch_tokens": 256, "validate_every": 50, "log_every": 1, "save_every": 5,
                 "validation_sentences": 5}
  })");
  return {"train", "copy.json", "--run", folder, "--threads", "1"};
}

/// The checkpoint of such a run that nothing disturbed, in the folder "straight".
inline const std::string& undisturbed() {
  static const std::string last = [] {
    const Outcome outcome = run_weft(copy_run("straight"));
    REQUIRE(outcome.code == 0);
    return bytes_of("straight/last.safetensors");
  }();
  return last;
}

inline std::size_t log_lines(const std::string& folder) {
  const std::string log = bytes_of(folder + "/log.jsonl");
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
}

/// Waits until a run has logged so many lines.
inline void wait_for_lines(const std::string& folder, std::size_t lines) {
  for (int i = 0; i < 20'000 && log_lines(folder) < lines; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(log_lines(folder) >= lines);
}

/// Starts a run and stops it after so many lines of its log.
inline void begin_run(const Words& words, const std::string& folder, std::size_t lines) {
  const Background run(words);
  wait_for_lines(folder, lines);
  run.send(SIGTERM);
  REQUIRE(run.wait().code == 128 + SIGTERM);
}

}  // namespace weft::cli

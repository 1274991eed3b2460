// Runs that are looked at, or disturbed, at one moment of their beginning.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "copy_run.h"

namespace weft::cli {

/// All files of a folder, by name.
inline std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = bytes_of(entry.path());
  }
  return files;
}

/// Runs weft, whose test text is a pipe of this name, which is read after the validation text, and does something as long as
/// it waits for that.
template <class Action>
Outcome run_with_pause(const Words& words, const std::string& test_source, Action action) {
  fs::remove(test_source);
  REQUIRE(::mkfifo(test_source.c_str(), 0666) == 0);
  const Background run(words);
  {
    const Descriptor pipe(test_source, O_WRONLY);  // once it is read
    action();
    const std::string text = bytes_of("test.src");
    REQUIRE(::write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  return run.wait();
}

/// Runs weft train with copy.json, does something as long as it waits to write a file, which the test holds back, and lets it
/// go on.
template <class Action>
Outcome run_held_back(const Words& options, const fs::path& file, Action action) {
  const std::string config = "held back.json";  // a pipe, so that nothing happens before the process's number is known
  fs::remove(config);
  REQUIRE(::mkfifo(config.c_str(), 0666) == 0);
  const fs::path err = workplace() / "err";
  fs::remove(err);
  const Descriptor null("/dev/null", O_RDWR), errors(err, O_WRONLY | O_CREAT);
  const pid_t child = start(Words{"train", config} + options, null, null, errors);
  {
    const fs::path temporary = file.string() + "." + std::to_string(child) + ".tmp";
    const Descriptor held(temporary, O_WRONLY | O_CREAT);
    REQUIRE(::flock(held, LOCK_EX) == 0);
    {
      const Descriptor pipe(config, O_WRONLY);
      const std::string text = bytes_of("copy.json");
      REQUIRE(::write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    const auto waits = [&] {
      std::error_code gone;
      for (const auto& open : fs::directory_iterator(fs::path("/proc") / std::to_string(child) / "fd", gone)) {
        if (fs::read_symlink(open.path(), gone) == fs::canonical(temporary)) return true;
      }
      return false;
    };
    for (int i = 0; i < 10'000 && !waits(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(waits());
    action();
  }
  const int code = wait_for(child);
  return {code, "", bytes_of(err)};
}

}  // namespace weft::cli

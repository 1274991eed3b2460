// Runs the real program `weft` in a working folder of its own and takes what it printed. Paths in tests are
// relative to that folder, which is the test process's current directory from the first call on.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"
#include "tiny_run.h"

namespace weft::cli {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// How a program ended and what it printed.
struct Outcome {
  int code = 0;  ///< exit code, or minus the signal that killed it
  std::string out, err;
};

/// The folders of this test process: one to work in, one for what the programs print.
struct Workplace {
  Workplace() {
    fs::create_directory(folder / "work");
    fs::current_path(folder / "work");
  }
  ~Workplace() { fs::current_path("/"); }
  TemporaryFolder folder;
};
inline const TemporaryFolder& workplace() {
  static const Workplace place;
  return place.folder;
}

/// Starts weft with these descriptors as its standard streams, none for a negative one, and variables such as
/// "OMP_NUM_THREADS=1" besides ours.
inline pid_t start(const Words& words, int in, int out, int err, const Words& variables = {}) {
  workplace();
  std::vector<char*> argv, environment;
  std::string program = WEFT_BINARY;
  Words copy = words, given = variables;
  argv.push_back(program.data());
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (std::string& variable : given) environment.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = std::string(*variable).substr(0, std::string(*variable).find('=') + 1);
    if (std::none_of(given.begin(), given.end(), [&](const auto& v) { return v.starts_with(name); })) {
      environment.push_back(*variable);
    }
  }
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int streams[] = {in, out, err};
  for (int i = 0; i < 3; ++i) {
    if (streams[i] < 0) {
      posix_spawn_file_actions_addclose(&actions, i);
    } else {
      posix_spawn_file_actions_adddup2(&actions, streams[i], i);
    }
  }
  posix_spawnattr_t attributes;  // signals that are ignored here, as under nohup, are not ignored there
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&signals, signal);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, WEFT_BINARY, &actions, &attributes, argv.data(), environment.data()) == 0);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

/// Waits for a program that start() started; kills it after a minute.
inline int wait_for(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// A file as a descriptor that programs do not inherit by accident.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    REQUIRE(file_ >= 0);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(file_); }
  operator int() const { return file_; }  // NOLINT(google-explicit-constructor)

 private:
  int file_;
};

/// weft running beside the test, with empty input.
class Background {
 public:
  explicit Background(const Words& words) : out_(workplace() / "out"), err_(workplace() / "err") {
    const Descriptor in("/dev/null", O_RDONLY), out(out_, O_WRONLY | O_CREAT | O_TRUNC),
        err(err_, O_WRONLY | O_CREAT | O_TRUNC);
    child_ = start(words, in, out, err);
  }
  void send(int signal) const { ::kill(child_, signal); }
  Outcome wait() const { return {wait_for(child_), bytes_of(out_), bytes_of(err_)}; }

 private:
  fs::path out_, err_;
  pid_t child_;
};

/// Runs weft to its end with `input` as standard input. The standard output can go to another file, such as a
/// device.
inline Outcome run_weft(const Words& words, const std::string& input = "", const Words& variables = {},
                        const fs::path& output = {}) {
  put(workplace() / "in", input);
  const fs::path out_path = output.empty() ? workplace() / "out" : output, err_path = workplace() / "err";
  const Descriptor in(workplace() / "in", O_RDONLY), out(out_path, O_WRONLY | O_CREAT | O_TRUNC),
      err(err_path, O_WRONLY | O_CREAT | O_TRUNC);
  const int code = wait_for(start(words, in, out, err, variables));
  return {code, output.empty() ? bytes_of(out_path) : "", bytes_of(err_path)};
}

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Splits text at line ends; the last line must have one.
inline Words lines_of(const std::string& text) {
  Words lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    REQUIRE(end != text.npos);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

inline std::string joined(const Words& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// All files and folders in the working folder.
inline std::set<std::string> everything() {
  workplace();
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(".")) names.insert(entry.path().string());
  return names;
}

/// Checks that weft refuses in one line that holds `parts`, with exit code 2, prints nothing else, and leaves
/// no file.
inline void check_refused(const Words& words, const Words& parts, const std::string& input = "") {
  const auto before = everything();
  const Outcome outcome = run_weft(words, input);
  CAPTURE(words);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("weft: "));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.ends_with("\n"));
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(contains(outcome.err, part));
  }
  CHECK(everything() == before);
}

/// Writes text to train on, tiny.json that names it, and tiny/best.safetensors, a model that copies letters;
/// the last is returned. All once.
inline const std::string& trained() {
  static const std::string checkpoint = [] {
    workplace();
    std::uint64_t seed = 1;
    for (const std::string split : {"train", "valid", "test"}) {
      const ParallelText text = letters(split == "train" ? 400 : 20, seed++, 1, 7);
      put(split + ".src", joined(text.source));
      put(split + ".trg", joined(text.target));
    }
    put("tiny.json",
        "\xEF\xBB\xBF"
        R"(// A configuration with a byte order mark and comments.
{
  "data": {
    "train_source": "train.src", "train_target": "train.trg", "valid_source": "valid.src", "valid_target": "valid.trg",
    "test_source": "test.src", "test_target": "test.trg", "max_length": 9
  },
  "model": {"d_model": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 64, "dropout": 0,
            "max_length": 10},  /* so a source of more than 9 words is cut */
  "optimizer": {"learning_rate": 0.01},
  "schedule": {"warmup_steps": 10},
  "training": {"steps": 300, "batch_tokens": 300, "validate_every": 100, "label_smoothing": 0, "log_every": 10}
}
)");
    const Outcome outcome = run_weft({"train", "tiny.json", "--run", "tiny"});
    CAPTURE(outcome.out);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return std::string("tiny/best.safetensors");
  }();
  return checkpoint;
}

}  // namespace weft::cli

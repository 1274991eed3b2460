// The folder of a run: that of this run and no other's, and what is in it of a run, of killed ones, and of the user.
#include "weft/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <thread>

#include "copy_run.h"
#include "faulty_run.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/train/kept_checkpoints.h"

using namespace weft;
using namespace weft::cli;

namespace {

/// All files of a folder, by name.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = bytes_of(entry.path());
  }
  return files;
}

/// Training in a folder that is held, with the layers of faulty_run.h.
class HeldSession {
 public:
  HeldSession(const fs::path& folder, const Config& config) : lock_(folder), progress_(stdout, true) {
    if (fs::exists(folder / "last.safetensors")) {
      checkpoint_ = load_checkpoint(folder / "last.safetensors", faulty_layers());
    } else {
      checkpoint_.model = tiny_model(config, faulty_layers());
    }
  }

  Trainer& trainer(const fs::path& folder) {
    TrainingData data = tiny_data(*checkpoint_.model, letters(60, 5), letters(10, 6));
    data.require_folder = [this] { lock_.require_held(); };
    return trainer_.emplace(*checkpoint_.model, checkpoint_.state, std::move(data), folder, progress_);
  }

 private:
  FolderLock lock_;
  Progress progress_;
  Checkpoint checkpoint_;
  std::optional<Trainer> trainer_;
};

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

/// Puts a longer run of the same configuration in the place of a folder.
void replace(const fs::path& folder, const fs::path& by) {
  fs::rename(folder, folder.string() + ".old");
  fs::rename(by, folder);
}

}  // namespace

TEST_CASE("a run whose folder was replaced before it opened its log writes nothing there") {
  const Config config = with_policy("rollback");
  for (const int updates : {0, 3}) {
    CAPTURE(updates);
    const TemporaryFolder place;
    fs::create_directory(place / "run");
    if (updates > 0) train_for(place / "run", config, updates);
    train_for(place / "other", config, 9);
    HeldSession session(place / "run", config);
    replace(place / "run", place / "other");
    const auto before = files_of(place / "run");
    CHECK_THROWS_SAYING(session.trainer(place / "run"), "was removed or moved while it ran", Error);
    CHECK(files_of(place / "run") == before);
  }
}

TEST_CASE("a run whose folder was replaced after that writes no time there") {
  const TemporaryFolder place;
  fs::create_directory(place / "run");
  fs::create_directory(place / "other");
  HeldSession session(place / "run", with_policy("stop"));
  Trainer& trainer = session.trainer(place / "run");
  replace(place / "run", place / "other");
  CHECK_THROWS_SAYING(trainer.end_within(1e6, 0), "was removed or moved while it ran", Error);
  CHECK(files_of(place / "run").empty());
}

TEST_CASE("a rollback neither reads from nor writes to a folder that took the run's place") {
  const Config config = with_policy("rollback");
  const TemporaryFolder place;
  fs::create_directory(place / "run");
  train_for(place / "other", config, 9);
  std::map<std::string, std::string> before;
  const Faulty faulty(Fault::Kind::kGradient, [&](std::uint64_t step, const Var&) {
    if (step != 7) return false;
    if (before.empty()) {
      replace(place / "run", place / "other");
      before = files_of(place / "run");
    }
    return true;
  });
  HeldSession session(place / "run", config);
  Trainer& trainer = session.trainer(place / "run");
  CHECK_THROWS_SAYING(trainer.run(kNoStop), "was removed or moved while it ran", Error);
  REQUIRE_FALSE(before.empty());
  CHECK(files_of(place / "run") == before);
}

TEST_CASE("a best checkpoint that a killed process saved later is not taken for that of the best validation") {
  const Config config = tiny_config({"training.steps=12", "training.validate_every=3", "training.keep_last=9"});
  const TemporaryFolder folder;
  Session(folder.path(), config).finish();
  Progress progress(stdout, true);
  const fs::path best = folder / "best.safetensors", later = folder / "step-12.safetensors";
  TrainingState state = load_state(folder / "step-6.safetensors");
  REQUIRE(state.best_step > 0);
  const fs::path right = step_checkpoint(folder.path(), state.best_step);
  const Index best_step = state.best_step;
  fs::copy_file(later, best, fs::copy_options::overwrite_existing);
  mend_best(folder.path(), state, false, progress);  // made anew from the one that was kept beside it
  CHECK(state.best_step == best_step);
  CHECK((bytes_of(best) == bytes_of(right)));
  mend_best(folder.path(), state, false, progress);  // and right as it is
  CHECK(state.best_step == best_step);

  fs::copy_file(later, best, fs::copy_options::overwrite_existing);
  fs::copy_file(later, right, fs::copy_options::overwrite_existing);  // which does not have it either
  mend_best(folder.path(), state, false, progress);
  CHECK(state.best_step == 0);
}

TEST_CASE("a run whose folder is replaced while it writes its task's text or its log removes nothing there") {
  undisturbed();
  const Words options = Words{"--run", "late", "--threads", "1"};
  const Words words = copy_run("late");
  begin_run(words, "late", 3);
  fs::rename("late", "late before");
  const auto check_held_back = [&](const Words& more, const std::string& file) {
    fs::create_directories("late/data.new");
    std::map<std::string, std::string> before;
    const Outcome outcome = run_held_back(options + more, "late/" + file, [&] {
      fs::rename("late", "late moved");
      fs::copy("straight", "late", fs::copy_options::recursive);
      put("late/step-50.safetensors", "another run's");
      put("late/config.json", "another run's");
      before = files_of("late");
    });
    CAPTURE(outcome.err);
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, "weft: late: the folder of this run was removed or moved while it ran"));
    auto after = files_of("late");
    if (file == "log.jsonl") before.erase("late/log.jsonl"), after.erase("late/log.jsonl");
    CHECK(after == before);
    fs::remove_all("late");
    fs::remove_all("late moved");
  };
  check_held_back({}, "data.new/test.trg");
  fs::create_directory("late");
  put("late/last.safetensors", "of an earlier run");
  check_held_back({"--fresh"}, "data.new/test.trg");
  fs::rename("late before", "late");
  check_held_back({}, "log.jsonl");
}

TEST_CASE(
    "a folder that cannot be held or looked at is an error, and not taken for one without locks, or for another") {
  workplace();
  fs::create_directory("lent");
  const FileCalls before = file_calls();
  static int failures;
  failures = 1;
  file_calls().open = [](const char* path, int flags, mode_t mode) {
    return failures-- > 0 ? (errno = EINTR, -1) : ::open(path, flags, mode);
  };
  const FolderLock lock("lent");
  CHECK_THROWS_SAYING(FolderLock("lent"), "lent: another weft train is at work there", DataError);
  file_calls().open = [](const char*, int, mode_t) { return errno = EMFILE, -1; };
  CHECK_THROWS_SAYING(FolderLock("lent"), "lent: cannot be held as run folder (Too many open files)", DataError);
  file_calls() = before;
  lock.require_held();
  fs::remove("lent");
  fs::create_symlink("lent", "lent");
  CHECK_THROWS_SAYING(lock.require_held(), "lent: the folder of this run cannot be looked at: Too many levels", Error);
}

TEST_CASE("--fresh does not remove the checkpoint that it is to begin from, by whatever name") {
  undisturbed();
  fs::create_symlink("straight/best.safetensors", "start.safetensors");
  check_refused(copy_run("straight") + Words{"--fresh", "--from", "start.safetensors"},
                {"start.safetensors, straight/best.safetensors, which --fresh would remove"});
  fs::create_directory_symlink("straight", "way");
  check_refused(copy_run("straight") + Words{"--fresh", "--from", "way/best.safetensors"},
                {"which --fresh would remove"});
  // A copy by a hard link is not removed, nor is what a link in the folder leads to.
  fs::create_hard_link("straight/best.safetensors", "copied.safetensors");
  require_not_removed("straight", "copied.safetensors");
  fs::create_directory("linked");
  fs::create_symlink("../copied.safetensors", "linked/best.safetensors");
  require_not_removed("linked", "copied.safetensors");
  CHECK_THROWS_SAYING(require_not_removed("linked", "linked/best.safetensors"), "which --fresh would remove",
                      ConfigError);
}

TEST_CASE("--fresh that cannot write the text of its task costs no earlier run") {
  const Words words = copy_run("blocked") + Words{"--set", "training.steps=20"};
  REQUIRE(run_weft(words).code == 0);
  const auto check_blocked = [&](const std::string& problem) {
    const auto before = files_of("blocked");
    check_refused(words + Words{"--fresh"}, {problem});
    CHECK((files_of("blocked") == before));
  };
  fs::remove("blocked/data/train.src");
  fs::create_directory("blocked/data/train.src");
  check_blocked("blocked/data/train.src: is a folder, in the place of the task's text; move it away");
  fs::remove_all("blocked/data");
  put("blocked/data", "mine");
  check_blocked("blocked/data: is no folder, but the run writes its task's text into its own folder");
  // Nor does it write through a link.
  fs::remove("blocked/data");
  fs::create_directory("texts of mine");
  put("texts of mine/train.src", "mine\n");
  fs::create_directory_symlink("../texts of mine", "blocked/data");
  check_blocked("blocked/data: is a link, but");
  fs::rename("blocked/data", "blocked/data.new");
  check_blocked("blocked/data.new: is a link, but");
  CHECK(bytes_of("texts of mine/train.src") == "mine\n");
}

TEST_CASE("--fresh leaves the text of the earlier run until its own is written") {
  const Words words = copy_run("rewritten") + Words{"--set", "training.steps=20"};
  REQUIRE(run_weft(words).code == 0);
  const auto before = files_of("rewritten");
  fs::create_directory("rewritten/data.new");
  put("rewritten/data.new/train.src", "what a process left that was killed");
  std::map<std::string, std::string> meanwhile;
  const Outcome outcome =
      run_held_back({"--fresh", "--run", "rewritten", "--set", "data.pairs=150"}, "rewritten/data.new/test.trg", [&] {
        meanwhile = files_of("rewritten");
        std::erase_if(meanwhile, [](const auto& file) { return contains(file.first, "data.new"); });
      });
  CHECK(outcome.code == 0);
  CHECK((meanwhile == before));
  CHECK(lines_of(bytes_of("rewritten/data/train.src")).size() == 150);
  CHECK_FALSE(fs::exists("rewritten/data.new"));
}

TEST_CASE("a file of a run that is a link to another of it is not written through") {
  const Words words = copy_run("knotted") + Words{"--set", "training.steps=100", "--set", "training.keep_last=2"};
  REQUIRE(run_weft(words + Words{"--set", "training.steps=50"}).code == 0);
  fs::remove("knotted/best.safetensors");
  fs::create_symlink("step-50.safetensors", "knotted/best.safetensors");
  const auto before = files_of("knotted");
  check_refused(words, {"knotted/best.safetensors: is a link to step-50.safetensors, which would change with it"});
  CHECK((files_of("knotted") == before));
  CHECK(run_weft(words + Words{"--fresh"}).code == 0);
  // One to a file elsewhere stays a link, as where checkpoints are kept on another disk.
  fs::rename("knotted/best.safetensors", "best elsewhere.safetensors");
  fs::create_symlink("../best elsewhere.safetensors", "knotted/best.safetensors");
  CHECK(run_weft(words).code == 0);
}

TEST_CASE("a last checkpoint that training cannot go on from is refused before anything is removed") {
  const Words words = copy_run("copied") + Words{"--set", "training.steps=60",   "--set", "training.validate_every=20",
                                                 "--set", "training.keep_last=3"};
  REQUIRE(run_weft(words).code == 0);
  fs::copy_file("copied/step-20.safetensors", "copied/last.safetensors", fs::copy_options::overwrite_existing);
  const auto before = files_of("copied");
  check_refused(words, {"copied/last.safetensors: no tensor optimizer.first_moment"});
  CHECK((files_of("copied") == before));
}

TEST_CASE("files of the user are not replaced by a first run unasked") {
  const Words words = copy_run("own") + Words{"--set", "training.steps=2"};
  fs::create_directories("own/data");
  const auto refused = [&](const std::string& name, const std::string& text) {
    put("own/" + name, text);
    check_refused(words, {"own: holds " + name + ", which no run left there", "--fresh"});
    CHECK(bytes_of("own/" + name) == text);
    fs::remove("own/" + name);
  };
  refused("config.json", "{\"mine\": 1}\n");
  refused("config.json", bytes_of("copy.json"));
  refused("config.json", run_weft({"config", "show", "copy.json", "--set", "training.seed=7"}).out);
  refused("log.jsonl", "{\"mine\": 1}\n");
  refused("log.jsonl", "mine");
  refused("data/train.src", "mine\n");
  const auto refused_in_time = [&](const std::string& text) {
    put("own/spent_seconds.txt", text);
    check_refused(words + Words{"--minutes", "1"}, {"own: holds spent_seconds.txt, which no run left there"});
    CHECK(bytes_of("own/spent_seconds.txt") == text);
  };
  refused_in_time("mine");
  refused_in_time("2026.5\nmine\n");
  fs::remove("own/spent_seconds.txt");
  REQUIRE(::mkfifo("own/log.jsonl", 0666) == 0);
  check_refused(words, {"own: holds log.jsonl, which no run left there"});
  fs::remove("own/log.jsonl");
  REQUIRE(run_weft(words).code == 0);

  // What a run leaves that was killed, or diverged, before its first checkpoint is replaced, by another too.
  for (const char* name : {"last.safetensors", "best.safetensors"}) fs::remove(fs::path("own") / name);
  CHECK(run_weft(words + Words{"--set", "data.pairs=150", "--set", "training.seed=2"}).code == 0);
  for (const char* name : {"last.safetensors", "best.safetensors", "config.json", "data/valid.trg"}) {
    fs::remove(fs::path("own") / name);
  }
  CHECK(run_weft(words + Words{"--set", "data.pairs=150"}).code == 0);
  fs::remove_all("own");
  fs::create_directory("own");
  put("own/log.jsonl", "{\"st");
  CHECK(run_weft(words).code == 0);
}

TEST_CASE("a text of the user stays beside what a run without a task left that was killed at its beginning") {
  trained();
  const Words words = copy_run("texts") + Words{"--set", "training.steps=2"};
  REQUIRE(run_weft({"train", "tiny.json", "--run", "texts", "--set", "training.steps=2"}).code == 0);
  const auto kill_at_beginning = [] {
    for (const char* name : {"last.safetensors", "best.safetensors"}) fs::remove(fs::path("texts") / name);
  };
  kill_at_beginning();
  fs::create_directories("texts/data");
  put("texts/data/train.src", "mine\n");
  check_refused(words, {"texts: holds data/train.src, which no run left there"});
  fs::remove("texts/data/train.src");
  REQUIRE(run_weft(words).code == 0);
  // Beside the text of another task too.
  kill_at_beginning();
  put("texts/data/train.src", "mine\n");
  check_refused(words + Words{"--set", "data.pairs=150"}, {"texts: holds data/train.src, which no run left there"});
  CHECK(bytes_of("texts/data/train.src") == "mine\n");
}

TEST_CASE("a folder that appears while a first run begins is looked at like one that was there") {
  trained();
  const Words words{"train", "tiny.json", "--run", "sudden", "--set", "data.test_source=sudden.src"};
  const auto check_sudden = [&](const std::string& name, const std::string& text) {
    const Outcome outcome = run_with_pause(words, "sudden.src", [&] {
      fs::create_directory("sudden");
      put("sudden/" + name, text);
    });
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.err, "sudden: holds " + name));
    CHECK(bytes_of("sudden/" + name) == text);
    fs::remove_all("sudden");
  };
  check_sudden("log.jsonl", "mine");
  check_sudden("best.safetensors", "mine");
}

TEST_CASE("a run whose folder is removed or replaced while it reads its text writes nothing to that path") {
  trained();
  put("paused.src", bytes_of("test.src"));
  const Words words{"train", "tiny.json",
                    "--run", "paused",
                    "--set", "data.test_source=paused.src",
                    "--set", "training.steps=100000",
                    "--set", "training.save_every=1",
                    "--set", "training.log_every=1"};
  begin_run(words, "paused", 3);
  put("paused/step-1.safetensors", "another run's");
  fs::rename("paused", "begun");
  for (const bool fresh : {false, true}) {
    for (const bool replaced : {false, true}) {
      CAPTURE(fresh);
      CAPTURE(replaced);
      fs::copy("begun", "paused", fs::copy_options::recursive);
      const Outcome outcome = run_with_pause(words + (fresh ? Words{"--fresh"} : Words{}), "paused.src", [&] {
        fs::rename("paused", "paused before");
        if (replaced) fs::copy("begun", "paused", fs::copy_options::recursive);
      });
      CHECK(outcome.code == 1);
      CHECK(contains(outcome.err, "weft: paused: the folder of this run was removed or moved while it ran"));
      CHECK(fs::exists("paused") == replaced);
      if (replaced) CHECK((files_of("paused").size() == files_of("begun").size()));
      if (replaced) CHECK((bytes_of("paused/log.jsonl") == bytes_of("begun/log.jsonl")));
      fs::remove_all("paused");
      fs::remove_all("paused before");
    }
  }
}

TEST_CASE("validation text that changes after it was read is seen") {
  trained();
  put("moving.src", bytes_of("valid.src"));
  const Outcome outcome = run_with_pause({"train", "tiny.json", "--run", "seen", "--set",
                                          "data.valid_source=moving.src", "--set", "data.test_source=slow.src"},
                                         "slow.src", [] { put("moving.src", "a" + bytes_of("valid.src")); });
  CHECK(outcome.code == 2);
  CHECK(outcome.err == "weft: moving.src: changed while it was read; begin again once nothing writes to it\n");
  CHECK_FALSE(fs::exists("seen"));
}

TEST_CASE("an empty name of a run folder is refused") {
  workplace();
  Words words = copy_run("");
  check_refused(words, {"--run is empty; "});
}

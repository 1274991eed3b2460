// The folder of a run is that of this run and no other's: it is held, and seen to be removed, replaced or made meanwhile.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <thread>

#include "faulty_run.h"
#include "held_back.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/train/run_folder.h"

using namespace weft;
using namespace weft::cli;

namespace {

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

TEST_CASE("a run whose folder is replaced while it writes its task's text or its log removes nothing there") {
  undisturbed();
  const Words options = Words{"--run", "late", "--threads", "1"};
  const Words words = copy_run("late");
  begin_run(words, "late", 3);
  fs::rename("late", "late before");
  const auto check_held_back = [&](const Words& more, const std::string& file) {
    fs::create_directories("late/data");
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
  check_held_back({}, "data/test.trg");
  fs::create_directory("late");
  put("late/last.safetensors", "of an earlier run");
  check_held_back({"--fresh"}, "data/test.trg");
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

TEST_CASE("a run in a folder that cannot be locked says so and goes on") {
  const Words words = copy_run("unlocked") + Words{"--quiet", "--set", "training.steps=2"};
  bool filtered = false;
  Outcome outcome;
  std::thread([&] {  // which alone, with what it starts, has no locks
    sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{4, steps};
    filtered = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
    if (filtered) outcome = run_weft(words);
  })
      .join();
  if (!filtered) return;  // which not every system allows
  CHECK(outcome.code == 0);
  CHECK(outcome.err ==
        "weft: warning: unlocked: cannot be locked (No locks available); let no other weft train use it meanwhile\n");
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

// What is in the folder of a run: of this run, of killed ones, and of the user.
#include "weft/train/run_folder.h"

#include <sys/stat.h>

#include <cstdlib>

#include "held_back.h"
#include "session.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/train/kept_checkpoints.h"
#include "weft/train/run_inputs.h"

using namespace weft;
using namespace weft::cli;

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

namespace {

void require_start_kept(const fs::path& folder, const std::string& start) {
  require_inputs_kept(folder, tiny_config({"training.warm_start=" + start}), true);
}

}  // namespace

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
  require_start_kept("straight", "copied.safetensors");
  fs::create_directory("linked");
  fs::create_symlink("../copied.safetensors", "linked/best.safetensors");
  require_start_kept("linked", "copied.safetensors");
  require_start_kept("not there", "copied.safetensors");
  CHECK_THROWS_SAYING(require_start_kept("linked", "linked/best.safetensors"), "which --fresh would remove",
                      ConfigError);
  // What cannot be looked at may be it.
  fs::create_symlink("tangled", "tangled");
  CHECK_THROWS_SAYING(require_start_kept("straight", "tangled/best.safetensors"),
                      "tangled: cannot be looked at: Too many levels", Error);
}

TEST_CASE("--fresh does not remove the checkpoint that it is to begin from where its folder is mounted elsewhere too") {
  undisturbed();
  fs::create_directory("mounted");
  const auto in_own_mounts = [](const std::string& command) {
    return std::system(("unshare -rm sh -c 'mount --bind straight mounted && " + command + "' 2> mounted.err").c_str());
  };
  if (in_own_mounts("true") != 0) return;  // which not every system allows
  const auto before = files_of("straight");
  CHECK(in_own_mounts(WEFT_BINARY " train copy.json --run straight --fresh --from mounted/last.safetensors --quiet") !=
        0);
  CHECK(contains(bytes_of("mounted.err"), "mounted/last.safetensors, which --fresh would remove"));
  CHECK((files_of("straight") == before));
}

TEST_CASE("a run does not remove or replace the text that it reads") {
  trained();
  fs::create_directories("source/cache");
  for (const std::string name : {"log.jsonl", "step-3.safetensors", "cache/0123456789abcdef.corpus"}) {
    const fs::path path = fs::path("source") / name;
    fs::copy_file("train.src", path);
    const Words words{"train", "tiny.json", "--run", "source", "--set", "data.train_source=" + path.string()};
    check_refused(words + Words{"--fresh"}, {"data has the file " + path.string() + ", which --fresh would remove"});
    if (name.starts_with("cache")) check_refused(words, {path.string() + ", which this run would replace"});
    CHECK((bytes_of(path) == bytes_of("train.src")));
    fs::remove(path);
  }
  // Under other names, or in a cache of several runs, it may be there.
  for (const std::string name : {"train.src", "cache/0123456789abcdef.corpus"}) {
    const std::string path = "source/" + name;
    fs::copy_file("train.src", path);
    require_inputs_kept(
        "source", tiny_config({"data.train_source=" + path, "data.train_target=train.trg", "data.cache=source/cache"}),
        true);
  }
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
  check_blocked("blocked/data/train.src: is a folder in the place of the task's text; move it away");
  fs::remove_all("blocked/data");
  put("blocked/data", "mine");
  check_blocked("blocked/data: is no folder, but the run writes its task's text into its own folder");
  // Nor does it write through a link.
  fs::remove("blocked/data");
  fs::create_directory("texts of mine");
  put("texts of mine/train.src", "mine\n");
  fs::create_directory_symlink("../texts of mine", "blocked/data");
  check_blocked("blocked/data: is a link, but");
  CHECK(bytes_of("texts of mine/train.src") == "mine\n");
}

TEST_CASE("a run gets its text back that a --fresh had begun to replace which was killed or failed") {
  const Words words = copy_run("rewritten");
  REQUIRE(run_weft(words + Words{"--set", "training.steps=20"}).code == 0);
  const auto text = files_of("rewritten/data");
  const Words fresh{"--fresh", "--run", "rewritten", "--set", "data.pairs=150"};
  const Outcome outcome = run_held_back(fresh, "rewritten/data/test.trg", [] {
    fs::copy("rewritten", "killed", fs::copy_options::recursive);  // as it would be after a kill
  });
  CHECK(outcome.code == 0);
  CHECK(lines_of(bytes_of("rewritten/data/train.src")).size() == 150);
  CHECK_FALSE(fs::exists("rewritten/data.unfinished"));

  fs::remove_all("rewritten");
  fs::rename("killed", "rewritten");
  CHECK((files_of("rewritten/data") != text));
  CHECK(run_weft(words + Words{"--set", "training.steps=20"}).code == 0);  // which is over
  CHECK((files_of("rewritten/data") == text));
  CHECK_FALSE(fs::exists("rewritten/data.unfinished"));
  // One without checkpoints is a killed run's, whatever text there is.
  for (const char* name : {"last.safetensors", "best.safetensors", "log.jsonl", "config.json"}) {
    fs::remove(fs::path("rewritten") / name);
  }
  check_refused(words + Words{"--set", "data.pairs=150"}, {"rewritten: holds data/train.src"});
  put("rewritten/data.unfinished", "mine");
  check_refused(words + Words{"--fresh"}, {"rewritten/data.unfinished: is in the place of a file that the run makes"});
  CHECK(bytes_of("rewritten/data.unfinished") == "mine");
  put("rewritten/data.unfinished", "");
  CHECK(run_weft(words + Words{"--set", "data.pairs=150"}).code == 0);
  CHECK_FALSE(fs::exists("rewritten/data.unfinished"));
}

TEST_CASE("a file of a run that is a link to another of it is not written through") {
  const Words words = copy_run("knotted") + Words{"--set", "training.keep_last=2"};
  begin_run(words, "knotted", 60);
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
    check_refused(words, {"own: holds " + name + ", which is not of this run", "--fresh"});
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
    check_refused(words + Words{"--minutes", "1"}, {"own: holds spent_seconds.txt, which is not of this run"});
    CHECK(bytes_of("own/spent_seconds.txt") == text);
  };
  refused_in_time("mine");
  refused_in_time("2026.5\nmine\n");
  fs::remove("own/spent_seconds.txt");
  REQUIRE(::mkfifo("own/log.jsonl", 0666) == 0);
  check_refused(words, {"own: holds log.jsonl, which is not of this run"});
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

TEST_CASE("what a run left that was killed before its first update is replaced by any other") {
  trained();
  Words words = copy_run("begun") + Words{"--set", "training.steps=2"};
  Words options{"--run", "begun", "--set", "training.steps=2", "--set", "data.task=", "--set", "data.pairs=0"};
  for (const std::string name : {"train", "valid"}) {
    options = options + Words{"--set", "data." + name + "_source=" + name + ".src"};
    options = options + Words{"--set", "data." + name + "_target=" + name + ".trg"};
  }
  REQUIRE(run_weft(Words{"train", "copy.json"} + options).code == 0);
  const fs::path cache = fs::directory_iterator("begun/cache")->path();
  fs::remove_all("begun");
  fs::create_directories("begun/cache");
  const Outcome outcome =
      run_held_back(options, cache, [&] { fs::copy("begun", "killed", fs::copy_options::recursive); });
  CHECK(outcome.code == 0);
  words[3] = "killed";
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
  check_refused(words, {"texts: holds data/train.src, which is not of this run"});
  fs::remove("texts/data/train.src");
  REQUIRE(run_weft(words).code == 0);
  // Beside the text of another task too.
  kill_at_beginning();
  put("texts/data/train.src", "mine\n");
  check_refused(words + Words{"--set", "data.pairs=150"}, {"texts: holds data/train.src, which is not of this run"});
  CHECK(bytes_of("texts/data/train.src") == "mine\n");
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

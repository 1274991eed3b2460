// weft train through the real binary: what a run leaves, what it refuses, and how it begins anew.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "copy_run.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/file_calls.h"
#include "weft/train/arguments.h"
#include "weft/train/run_folder.h"
#include "weft/train/same_command.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

Words names(const Json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

}  // namespace

TEST_CASE("a run leaves its configuration, log, checkpoints and the task's text") {
  undisturbed();
  CHECK(bytes_of("straight/config.json") == run_weft({"config", "show", "copy.json"}).out);
  run_weft({"data", "make", "copy", "--pairs", "200", "--output", "made"});
  for (const std::string file : {"train.src", "train.trg", "valid.src", "valid.trg", "test.src", "test.trg"}) {
    CHECK_FALSE(bytes_of("made/" + file).empty());
    CHECK(bytes_of("straight/data/" + file) == bytes_of("made/" + file));
  }
  std::size_t steps = 0, validations = 0;
  for (const std::string& line : lines_of(bytes_of("straight/log.jsonl"))) {
    const Json entry = Json::parse(line);
    if (entry.contains("validation")) {
      ++validations;
      CHECK(names(entry) == Words{"step", "validation"});
      CHECK(names(entry["validation"]) == Words{"loss", "perplexity", "token_accuracy", "exact_match", "bleu", "chrf"});
    } else {
      ++steps;
      CHECK(names(entry) == Words{"step", "epoch", "loss", "learning_rate", "grad_norm", "tokens_per_second",
                                  "peak_bytes", "elapsed_seconds"});
    }
  }
  CHECK(steps == kCopySteps);
  CHECK(validations == 4);
  CHECK(everything().count("./straight/best.safetensors") == 1);
  std::ptrdiff_t files = 0;
  for (const auto& entry : fs::directory_iterator("straight")) files += entry.exists() ? 1 : 0;
  CHECK(files == 5);  // config.json, log.jsonl, data, last, best
}

TEST_CASE("the same command again says that it is done, and changes nothing") {
  undisturbed();
  const std::string log = bytes_of("straight/log.jsonl");
  const Outcome again = run_weft(copy_run("straight"));
  CHECK(again.code == 0);
  CHECK(contains(again.out, "straight is trained to its end, step 200; use --fresh"));
  CHECK(lines_of(again.out).size() == 1);
  CHECK(bytes_of("straight/last.safetensors") == undisturbed());
  CHECK(bytes_of("straight/log.jsonl") == log);
}

TEST_CASE("another configuration is refused for a folder with a run, naming the keys") {
  undisturbed();
  const Outcome outcome =
      run_weft(copy_run("straight") + Words{"--set", "model.d_model=8", "--set", "training.steps=500"});
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "straight"));
  CHECK(contains(outcome.err, "model.d_model: 16 -> 8\n"));
  CHECK(contains(outcome.err, "training.steps: 200 -> 500\n"));
  CHECK(contains(outcome.err, "--fresh"));
  CHECK(bytes_of("straight/last.safetensors") == undisturbed());
  CHECK(run_weft(copy_run("straight") + Words{"--set", "training.threads=2"}).code == 0);  // changes no result
}

TEST_CASE("--fresh starts anew, but not before the text is known to be good") {
  trained();
  const Words words{"train", "tiny.json", "--run", "anew", "--set", "training.steps=20", "--quiet"};
  REQUIRE(run_weft(words).code == 0);
  const std::string last = bytes_of("anew/last.safetensors");
  check_refused(words + Words{"--fresh", "--set", "data.train_source=missing"}, {"missing"});
  CHECK(bytes_of("anew/last.safetensors") == last);
  CHECK(run_weft(words + Words{"--fresh"}).code == 0);
  CHECK(bytes_of("anew/last.safetensors") == last);
  CHECK(run_weft(words + Words{"--fresh", "--set", "training.seed=5"}).code == 0);
  CHECK(bytes_of("anew/last.safetensors") != last);
  CHECK(log_lines("anew") == 2 + 1);
  // The configuration in the run folder is as good as any other.
  const std::string config = bytes_of("anew/config.json");
  CHECK(run_weft({"train", "anew/config.json", "--run", "anew", "--fresh", "--quiet"}).code == 0);
  CHECK(bytes_of("anew/config.json") == config);
}

TEST_CASE("--quiet prints nothing, and any number of threads gives the same bytes") {
  trained();
  std::string last;
  for (const char* threads : {"1", "2", "3"}) {
    const Outcome outcome = run_weft({"train", "tiny.json", "--run", std::string("threads") + threads, "--set",
                                      "training.steps=20", "--quiet", "--threads", threads});
    CHECK(outcome.code == 0);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.empty());
    const std::string bytes = bytes_of(std::string("threads") + threads + "/best.safetensors");
    if (last.empty()) last = bytes;
    CHECK_FALSE(bytes.empty());
    CHECK(bytes == last);
  }
}

TEST_CASE("a folder that cannot be written to is refused before training") {
  if (::geteuid() == 0) return;  // who may write anywhere
  workplace();
  fs::create_directory("closed");
  fs::permissions("closed", fs::perms::owner_read | fs::perms::owner_exec);
  check_refused(copy_run("closed/run"), {"closed/run: cannot be used as run folder (Permission denied)"});
  check_refused(copy_run("closed"), {"closed: cannot be used as run folder (Permission denied)"});
  fs::permissions("closed", fs::perms::owner_all);
}

TEST_CASE("a run out of patience says so, then and when it is asked to go on") {
  const Words words =
      copy_run("patient") + Words{"--set", "training.patience=2",           "--set", "training.validate_every=10",
                                  "--set", "optimizer.learning_rate=1e-30", "--set", "optimizer.name=sgd"};
  const Outcome first = run_weft(words);
  CHECK(first.code == 0);
  CHECK(contains(first.out, "ended at step 30 of 200: 2 validations in a row without a better loss\n"));
  CHECK(contains(first.out, "best checkpoint: patient/best.safetensors"));
  const Outcome again = run_weft(words);
  CHECK(again.code == 0);
  CHECK(contains(again.out,
                 "patient is trained to its end, step 30 of 200: 2 validations in a row without a better loss; "
                 "use --fresh"));
}

TEST_CASE("--fresh removes the best checkpoint before the last, so that no other run's best stays alone") {
  workplace();
  fs::create_directories("half");
  for (const char* name : {"best.safetensors", "last.safetensors", "log.jsonl"}) {
    put(fs::path("half") / name, "of the earlier run");
  }
  const weft::FileCalls before = weft::file_calls();
  weft::file_calls().unlink = [](const char* path) {  // as if the process ended there
    return contains(path, "last.safetensors") ? (errno = EIO, -1) : ::unlink(path);
  };
  CHECK_THROWS_SAYING(weft::clean_run_folder("half", {}, true), "last.safetensors: cannot remove (Input/output error)",
                      weft::Error);
  weft::file_calls() = before;
  CHECK_FALSE(fs::exists("half/best.safetensors"));
  CHECK(fs::exists("half/last.safetensors"));
  CHECK(fs::exists("half/log.jsonl"));
}

TEST_CASE("a folder in the place of a run's file is seen before anything is removed, with --fresh too") {
  const Words words = copy_run("taken");
  for (const std::string name : {"last.safetensors", "log.jsonl", "step-20.safetensors", "spent_seconds.txt"}) {
    fs::create_directories("taken/" + name + "/in the way");
    put("taken/best.safetensors", "of the earlier run");
    put("taken/step-10.safetensors", "of the earlier run");
    for (const Words& more : {Words{}, Words{"--fresh"}, Words{"--minutes", "1"}}) {
      check_refused(words + more, {"taken/" + name + ": is a folder in the place of a run's file; move it away"});
    }
    CHECK(fs::exists("taken/best.safetensors"));
    CHECK(fs::exists("taken/step-10.safetensors"));
    fs::remove_all("taken");
  }
}

TEST_CASE("--fresh does not remove the checkpoint that it is to begin from") {
  undisturbed();
  check_refused(copy_run("straight") + Words{"--fresh", "--from", "straight/best.safetensors"},
                {"straight/best.safetensors, which --fresh would remove"});
}

TEST_CASE("weft evaluate does not write over the text that it scores") {
  trained();
  for (const std::string side : {"src", "trg"}) fs::copy_file("valid." + side, "own." + side);
  const Words words{"train", "tiny.json", "--run", "own", "--set", "training.steps=2"};
  REQUIRE(run_weft(words + Words{"--set", "data.valid_source=own.src", "--set", "data.valid_target=own.trg"}).code ==
          0);
  for (const char* file : {"own.src", "own.trg"}) {
    check_refused({"evaluate", "own/best.safetensors", "--split", "valid", "--output", file},
                  {"would replace what is read"});
  }
}

TEST_CASE("results without a checkpoint to go on from are not replaced unasked") {
  trained();
  const Words words{"train", "tiny.json",         "--run", "orphan",
                    "--set", "training.steps=30", "--set", "training.validate_every=10"};
  REQUIRE(run_weft(words).code == 0);
  std::filesystem::remove("orphan/last.safetensors");
  check_refused(words, {"holds best.safetensors, but no last.safetensors", "--fresh"});
  CHECK(run_weft(words + Words{"--fresh"}).code == 0);
  CHECK(run_weft(words + Words{"--fresh", "--set", "training.keep_last=2"}).code == 0);
  std::filesystem::remove("orphan/last.safetensors");
  std::filesystem::remove("orphan/best.safetensors");
  check_refused(words, {"holds step-", "but no last.safetensors"});
  CHECK(std::filesystem::exists("orphan/step-30.safetensors"));
  // A file of one's own is not a result, and is not replaced either.
  std::filesystem::create_directory("mine");
  put("mine/best.safetensors", "precious");
  check_refused({"train", "tiny.json", "--run", "mine"}, {"holds best.safetensors"});
}

TEST_CASE("results of another configuration are not replaced unasked, though there was but one validation") {
  const Words words = copy_run("single") + Words{"--set", "training.steps=60", "--set", "training.keep_last=2"};
  REQUIRE(run_weft(words).code == 0);
  for (const char* name : {"last.safetensors", "step-60.safetensors"}) fs::remove(fs::path("single") / name);
  fs::rename("single/step-50.safetensors", "single/best.safetensors");
  const std::string best = bytes_of("single/best.safetensors");
  const Outcome other = run_weft(words + Words{"--set", "model.d_feed_forward=48"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "made with another configuration"));
  CHECK(bytes_of("single/best.safetensors") == best);
  CHECK(run_weft(words).code == 0);  // the same run again, as after a kill in the middle of it
  CHECK(bytes_of("single/step-50.safetensors") == best);
}

TEST_CASE("the result of a run that is over is not replaced unasked, though it has but one validation") {
  const Words words = copy_run("over") + Words{"--set", "training.steps=40"};
  REQUIRE(run_weft(words).code == 0);
  fs::remove("over/last.safetensors");
  check_refused(words, {"over: holds best.safetensors, but no last.safetensors to go on from", "--fresh"});
  // Or if its time was out before the last step.
  weft::Checkpoint best = weft::load_checkpoint("over/best.safetensors", weft::standard_layers());
  weft::TrainingConfig training = best.model->config().training;
  training.steps = 100;
  best.model->set_training(training);
  const auto look = [&] {
    weft::save_checkpoint("over/best.safetensors", *best.model, best.state, nullptr);
    weft::require_no_results("over", best.model->config(), weft::standard_layers());
  };
  CHECK_NOTHROW(look());
  best.state.out_of_time = true;
  CHECK_THROWS_SAYING(look(), "over: holds best.safetensors", weft::DataError);
}

TEST_CASE("what a run kept to roll back to goes with its end, also if it was killed there") {
  const Words words = copy_run("rolled") + Words{"--set", "training.steps=2"};
  REQUIRE(run_weft(words).code == 0);
  fs::copy_file("rolled/last.safetensors", "rolled/rollback.safetensors");
  CHECK(contains(run_weft(words).out, "rolled is trained to its end"));
  CHECK_FALSE(fs::exists("rolled/rollback.safetensors"));
}

TEST_CASE("a configuration that cannot be looked at is not called missing") {
  workplace();
  fs::create_symlink("round.json", "round.json");
  check_refused({"train", "round.json"}, {"round.json: cannot be opened (Too many levels of symbolic links)"});
  check_refused({"train", std::string(300, 'x')}, {"x: cannot be opened (File name too long)"});
  check_refused({"train", "none.json"}, {"none.json: there is no such file"});
}

TEST_CASE("the configuration of a run may be given again from its folder, where it stays as it is") {
  trained();
  std::filesystem::create_directory("home");
  put("home/config.json", "// mine\n" + bytes_of("tiny.json").substr(3));
  const Words words{"train", "home/config.json", "--run", "home"};
  const Outcome changed = run_weft(words + Words{"--set", "training.steps=2"});
  REQUIRE(changed.code == 0);
  CHECK(
      contains(changed.out, "home/config.json stays as it was given; what the run has besides, as from --set, is in"));
  CHECK(contains(bytes_of("home/config.json"), "// mine"));
  put("home/config.json", run_weft({"config", "show", "home/config.json", "--set", "training.steps=2"}).out);
  const Outcome same = run_weft(words + Words{"--fresh"});
  CHECK(same.code == 0);
  CHECK_FALSE(contains(same.out, "stays as it was given"));
}

TEST_CASE("a run whose text has changed does not go on") {
  trained();
  for (const std::string side : {"src", "trg"}) fs::copy_file("valid." + side, "changing." + side);
  const Words words{"train", "tiny.json",
                    "--run", "changing",
                    "--set", "data.train_source=changing.src",
                    "--set", "data.train_target=changing.trg"};
  begin_run(words, "changing", 3);
  const std::string source = bytes_of("changing.src"), target = bytes_of("changing.trg");
  put("changing.src", source + "a b\n");
  check_refused(words, {"changing: changed since this run began: changing.src; restore what was there", "--fresh"});
  put("changing.trg", target + "a b\n");
  check_refused(words, {"changing.src, changing.trg;"});
  // A word that is as unknown as the one before is another text all the same.
  put("changing.src", source);
  put("changing.trg", target.substr(0, target.size() - 2) + "?\n");
  check_refused(words, {"changed since this run began: changing.trg;"});
  CHECK(run_weft(words + Words{"--fresh"}).code == 0);
}

TEST_CASE("a loss that is not a number ends the run with the step; what was saved before stays") {
  trained();
  const Words words{"train",  "tiny.json",
                    "--run",  "diverged",
                    "--set",  "optimizer.learning_rate=1e30",
                    "--set",  "training.save_every=1",
                    "--set",  "schedule.warmup_steps=1",
                    "--quiet"};
  const Outcome outcome = run_weft(words);
  CHECK(outcome.code == 1);
  CHECK(outcome.err.starts_with("weft: step "));
  CHECK(contains(outcome.err, "Lower optimizer.learning_rate (1e+30)"));
  CHECK(contains(outcome.err, "\n  first bad number: "));
  CHECK(contains(outcome.err, " of op "));
  CHECK(contains(outcome.err, " near parameter "));
  CHECK(contains(outcome.err, " pairs: train.src:"));
  const Words lines = lines_of(outcome.err);
  CHECK(std::all_of(lines.begin() + 1, lines.end(), [](const std::string& line) { return line.starts_with("  "); }));
  CHECK(run_weft({"inspect", "diverged/last.safetensors"}).code == 0);
  for (const std::string& line : lines_of(bytes_of("diverged/log.jsonl"))) CHECK(Json::accept(line));
  // What to do about it may be said later.
  const Outcome again = run_weft(words + Words{"--set", "training.on_divergence=skip"});
  CHECK(again.code == 1);
  CHECK(contains(again.err, "10 updates in a row were left out"));
  CHECK(run_weft({"inspect", "diverged/last.safetensors"}).code == 0);
}

TEST_CASE("commands that are printed work word for word") {
  using weft::shell_path;
  CHECK(shell_path("a/b-c_2.json") == "a/b-c_2.json");
  CHECK(shell_path("-c.json") == "./-c.json");
  CHECK(shell_path("my run/it's") == "'my run/it'\\''s'");
  CHECK(shell_path("caf\u00e9") == "'caf\u00e9'");
  CHECK(shell_path("r\n1\x1B[m'\\") == R"($'r\0121\033[m\'\\')");
  CHECK(shell_path("\xFF") == R"($'\377')");
  const weft::VerbHelp help{"train", "CONFIG", "", {{"run", "DIR", ""}, {"set", "KEY=VALUE", ""}}, {}};
  const weft::Arguments arguments(help, {"--run", "a b", "--set", "x=1", "--", "-c.json"});
  CHECK(weft::same_command(arguments) == weft::program_name() + " train ./-c.json --set x=1 --run 'a b'");
  CHECK(weft::program_name() == "cli_train_test");  // a program with layers of its own has its own name

  const Outcome outcome = run_weft(copy_run("my run") + Words{"--set", "training.steps=2"});
  CHECK(contains(outcome.out, "next: weft evaluate 'my run/best.safetensors', or: weft translate 'my run/best."));
}

TEST_CASE("pairs with a blank side and pairs that are too long are dropped whole and counted") {
  trained();
  put("gaps.src", "a\n\nb b\n\xC2\xA0\nc\na b c d e f a b c d e f\n");
  put("gaps.trg", "a\nb\nb b\nd\nc\nf\n");
  const Outcome outcome = run_weft({"train", "tiny.json", "--run", "gaps", "--set", "training.steps=3", "--set",
                                    "data.train_source=gaps.src", "--set", "data.train_target=gaps.trg"});
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "training text    3 of 6 pairs kept (2 dropped as blank on a side, 1 as too long)"));
  // Three pairs are fewer than a batch, and the vocabulary is what there is, not what was allowed.
  CHECK(contains(outcome.out, "batches          1 an epoch"));
  CHECK(contains(outcome.out, "3 updates in all"));
  CHECK(contains(outcome.out, "vocabulary       9 source, 8 target tokens"));
}

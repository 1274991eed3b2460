// weft train through the real binary: what a run leaves, and how it goes on after it was stopped or killed.
#include "cli.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli_stream.h"
#include "weft/core/error.h"
#include "weft/train/run_folder.h"
#include "weft/train/stop_signal.h"

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

/// A run of the copy task that takes about a second, logs every update and saves every fifth.
Words copy_run(const std::string& folder) {
  workplace();
  put("copy.json", R"({
    "data": {"task": "copy", "pairs": 200, "max_length": 20},
    "model": {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 32, "max_length": 32},
    "training": {"steps": 400, "batch_tokens": 256, "validate_every": 100, "log_every": 1, "save_every": 5,
                 "validation_sentences": 5}
  })");
  return {"train", "copy.json", "--run", folder, "--threads", "1"};
}

/// The checkpoint of such a run that nothing disturbed.
const std::string& undisturbed() {
  static const std::string last = [] {
    const Outcome outcome = run_weft(copy_run("straight"));
    REQUIRE(outcome.code == 0);
    return bytes_of("straight/last.safetensors");
  }();
  return last;
}

std::size_t log_lines(const std::string& folder) {
  const std::string log = bytes_of(folder + "/log.jsonl");
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
}

/// Waits until a run has logged so many lines.
void wait_for_lines(const std::string& folder, std::size_t lines) {
  for (int i = 0; i < 20'000 && log_lines(folder) < lines; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(log_lines(folder) >= lines);
}

/// Has programs that are started find files limited to so many bytes, until the end of its life.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit less = before_;
    less.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &less) == 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

/// Starts a run and stops it after so many lines of its log.
void begin_run(const Words& words, const std::string& folder, std::size_t lines) {
  const Background run(words);
  wait_for_lines(folder, lines);
  run.send(SIGTERM);
  REQUIRE(run.wait().code == 128 + SIGTERM);
}

bool has_leftovers(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tmp") return true;
  }
  return false;
}

/// Steps of a log, each once and in order.
void check_log_is_whole(const std::string& folder) {
  Json step = 0;
  for (const std::string& line : lines_of(bytes_of(folder + "/log.jsonl"))) {
    const Json entry = Json::parse(line);
    if (entry.contains("validation")) continue;
    CHECK(entry["step"] == step.get<int>() + 1);
    step = entry["step"];
  }
  CHECK(step == 400);
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
  CHECK(steps == 400);
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
  CHECK(contains(again.out, "straight is trained to its end, step 400; use --fresh"));
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
  CHECK(contains(outcome.err, "training.steps: 400 -> 500\n"));
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

TEST_CASE("a signal saves and says how to go on; the run goes on to the same bytes") {
  undisturbed();
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string folder = "stopped " + std::to_string(signal);
    const Words words = copy_run(folder);
    const Background run(words);
    wait_for_lines(folder, 30);
    run.send(signal);
    const Outcome outcome = run.wait();
    CHECK(outcome.code == 128 + signal);
    CHECK(outcome.err.empty());
    CHECK(contains(outcome.out, "\nstopped after step "));
    CHECK(contains(outcome.out, "weft train copy.json --run '" + folder + "' --threads 1\n"));
    const Outcome rest = run_weft(words);
    CHECK(rest.code == 0);
    CHECK(contains(rest.out, "going on after step "));
    CHECK(bytes_of(folder + "/last.safetensors") == undisturbed());
    CHECK(bytes_of(folder + "/best.safetensors") == bytes_of("straight/best.safetensors"));
    check_log_is_whole(folder);
  }
}

TEST_CASE("a signal that was ignored, as under nohup, is ignored; the others are noted") {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const volatile int& stop = weft::note_stop_signals();
  std::raise(SIGHUP);
  CHECK(stop == 0);
  std::raise(SIGTERM);
  CHECK(stop == SIGTERM);
  std::signal(SIGHUP, before);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

TEST_CASE("a run whose lines cannot be printed trains to its end and then fails") {
  undisturbed();
  const std::string lost = "weft: standard output: cannot write (";
  const Outcome full = run_weft(copy_run("full"), "", {}, "/dev/full");
  CHECK(full.code == 1);
  CHECK(full.err.starts_with(lost + "No space left on device); lines were lost, but the run is whole and saved"));
  CHECK(lines_of(full.err).size() == 1);
  CHECK(bytes_of("full/last.safetensors") == undisturbed());
  check_log_is_whole("full");
  CHECK(run_weft(copy_run("full"), "", {}, "/dev/full").code == 1);  // "trained to its end"
  {
    Pipe in, out;
    const Descriptor err(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    const pid_t child = start(copy_run("piped"), in.ends[0], out.ends[1], err);
    CHECK(out.read_lines(1).ends_with("\n"));
    out.close_read();
    CHECK(wait_for(child) == 1);
  }
  CHECK(bytes_of(workplace() / "err").starts_with(lost + "Broken pipe)"));
  CHECK(bytes_of("piped/last.safetensors") == undisturbed());
  {
    const Descriptor err(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    CHECK(wait_for(start(copy_run("silent"), -1, -1, err)) == 1);  // no file of the run gets what is printed
  }
  CHECK(bytes_of(workplace() / "err").starts_with(lost + "Bad file descriptor)"));
  CHECK(bytes_of("silent/last.safetensors") == undisturbed());
  check_log_is_whole("silent");
}

TEST_CASE("a file that may not grow ends the run with one line; what was saved stays, and the run goes on") {
  undisturbed();
  const Words words = copy_run("limited") + Words{"--quiet"};
  begin_run(words, "limited", 20);
  const std::string last = bytes_of("limited/last.safetensors");
  {
    const FileSizeLimit limit(8192);
    const Outcome outcome = run_weft(words);
    CHECK(outcome.code == 1);
    CAPTURE(outcome.err);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(contains(outcome.err, "last.safetensors: cannot be written: File too large"));
    CHECK(contains(outcome.err, "ulimit -f"));
  }
  CHECK(bytes_of("limited/last.safetensors") == last);
  CHECK_FALSE(has_leftovers("limited"));
  CHECK(run_weft(words).code == 0);
  CHECK(bytes_of("limited/last.safetensors") == undisturbed());
  CHECK(bytes_of("limited/best.safetensors") == bytes_of("straight/best.safetensors"));
  check_log_is_whole("limited");
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

TEST_CASE("a run that is killed again and again goes on each time, to the same bytes") {
  undisturbed();
  const Words words = copy_run("killed");
  for (const std::size_t lines :
       {std::size_t{1}, std::size_t{7}, std::size_t{60}, std::size_t{101}, std::size_t{230}}) {
    const Background run(words);
    wait_for_lines("killed", lines);
    // Some moment between two saves, or within one.
    std::this_thread::sleep_for(std::chrono::microseconds(700 * (lines % 7)));
    run.send(SIGKILL);
    CHECK(run.wait().code == -SIGKILL);
    if (fs::exists("killed/last.safetensors")) CHECK(run_weft({"inspect", "killed/last.safetensors"}).code == 0);
  }
  CHECK(run_weft(words).code == 0);
  CHECK(bytes_of("killed/last.safetensors") == undisturbed());
  CHECK(bytes_of("killed/best.safetensors") == bytes_of("straight/best.safetensors"));
  check_log_is_whole("killed");
  std::ptrdiff_t files = 0;
  for (const auto& entry : fs::directory_iterator("killed")) files += entry.exists() ? 1 : 0;
  CHECK(files == 5);  // nothing half written stayed
}

TEST_CASE("step checkpoints survive kills, and go with --fresh") {
  const Words keeping{"--set", "training.keep_best=3",       "--set", "training.keep_last=2",
                      "--set", "training.validate_every=20", "--set", "training.steps=200"};
  REQUIRE(run_weft(copy_run("keeps") + keeping).code == 0);
  const Words words = copy_run("keeps killed") + keeping;
  for (const std::size_t lines : {std::size_t{21}, std::size_t{65}, std::size_t{110}, std::size_t{150}}) {
    const Background run(words);
    wait_for_lines("keeps killed", lines);
    std::this_thread::sleep_for(std::chrono::microseconds(500 * (lines % 7)));
    run.send(SIGKILL);
    CHECK(run.wait().code == -SIGKILL);
  }
  CHECK(run_weft(words).code == 0);
  std::set<std::string> files, killed_files;
  for (const auto& entry : fs::directory_iterator("keeps")) files.insert(entry.path().filename().string());
  for (const auto& entry : fs::directory_iterator("keeps killed"))
    killed_files.insert(entry.path().filename().string());
  CHECK(files.size() >= 5 + 3);
  CHECK(killed_files == files);
  for (const std::string& name : files) {
    CAPTURE(name);
    if (name.ends_with(".safetensors")) CHECK(bytes_of("keeps killed/" + name) == bytes_of("keeps/" + name));
  }
  // A kill after the last checkpoint leaves what it made superfluous; the same command once more removes it.
  fs::copy_file("keeps/last.safetensors", "keeps/step-20.safetensors");
  put("keeps/last.safetensors.123.tmp", "half");
  CHECK(contains(run_weft(copy_run("keeps") + keeping).out, "is trained to its end"));
  std::set<std::string> cleaned;
  for (const auto& entry : fs::directory_iterator("keeps")) cleaned.insert(entry.path().filename().string());
  CHECK(cleaned == files);
  CHECK(run_weft(copy_run("keeps") + Words{"--fresh", "--set", "training.steps=3"}).code == 0);
  std::ptrdiff_t left = 0;
  for (const auto& entry : fs::directory_iterator("keeps")) left += entry.exists() ? 1 : 0;
  CHECK(left == 5);
}

TEST_CASE("a run out of patience says so, then and when it is asked to go on") {
  const Words words =
      copy_run("patient") + Words{"--set", "training.patience=2",           "--set", "training.validate_every=10",
                                  "--set", "optimizer.learning_rate=1e-30", "--set", "optimizer.name=sgd"};
  const Outcome first = run_weft(words);
  CHECK(first.code == 0);
  CHECK(contains(first.out, "ended at step 30 of 400: 2 validations in a row without a better loss\n"));
  CHECK(contains(first.out, "best checkpoint: patient/best.safetensors"));
  const Outcome again = run_weft(words);
  CHECK(again.code == 0);
  CHECK(contains(again.out,
                 "patient is trained to its end, step 30 of 400: 2 validations in a row without a better loss; "
                 "use --fresh"));
}

TEST_CASE("a second training in the same folder is refused") {
  undisturbed();
  const int folder = ::open("straight", O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(folder, LOCK_EX | LOCK_NB) == 0);
  Words words = copy_run("straight");
  words.push_back("--fresh");
  check_refused(words, {"another weft train is at work there"});
  CHECK(bytes_of("straight/last.safetensors") == undisturbed());
  ::close(folder);
  // Nothing there is even read, as it may be about to change.
  fs::create_directory("held");
  put("held/last.safetensors", "not yet whole");
  const int held = ::open("held", O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  check_refused(copy_run("held"), {"another weft train is at work there"});
  ::close(held);
}

TEST_CASE("a run whose folder is removed or replaced meanwhile saves nothing more, and says so") {
  for (const bool replaced : {false, true}) {
    CAPTURE(replaced);
    fs::remove_all("moved");
    fs::remove_all("elsewhere");
    const Words words = copy_run("moved") + Words{"--set", "training.steps=100000", "--set", "training.save_every=50"};
    const Background run(words);
    wait_for_lines("moved", 60);
    fs::rename("moved", "elsewhere");
    if (replaced) {
      fs::create_directory("moved");
      put("moved/last.safetensors", "another run's");
    }
    const Outcome outcome = run.wait();
    CHECK(outcome.code == 1);
    const bool seen = contains(outcome.err, "weft: moved: the folder of this run was removed or moved while it ran");
    const bool within_a_save = contains(outcome.err, "weft: moved/") && contains(outcome.err, "No such file");
    CHECK((seen || within_a_save));
    CHECK(lines_of(outcome.err).size() == 1);
    if (replaced) {
      CHECK(bytes_of("moved/last.safetensors") == "another run's");
      CHECK(std::distance(fs::directory_iterator("moved"), fs::directory_iterator()) == 1);
    }
    CHECK(run_weft({"inspect", "elsewhere/last.safetensors"}).code == 0);
  }
}

TEST_CASE("--fresh removes the best checkpoint before the last, so that no other run's best stays alone") {
  workplace();
  fs::create_directories("half/last.safetensors/in the way");  // as if the process ended there
  put("half/best.safetensors", "of the earlier run");
  CHECK_THROWS_AS(weft::clean_run_folder("half", {}, true), weft::Error);
  CHECK_FALSE(fs::exists("half/best.safetensors"));
}

TEST_CASE("a stopped run whose terminal is gone ends with the signal's code all the same") {
  {
    const Descriptor in("/dev/null", O_RDONLY), gone("/dev/full", O_WRONLY);
    const pid_t child = start(copy_run("gone"), in, gone, gone);
    wait_for_lines("gone", 20);
    ::kill(child, SIGHUP);
    CHECK(wait_for(child) == 128 + SIGHUP);
  }
  CHECK(run_weft({"inspect", "gone/last.safetensors"}).code == 0);
}

TEST_CASE("a signal reaches a run that waits for a pipe that nobody reads") {
  {
    Pipe in, out;
    REQUIRE(::fcntl(out.ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    const Descriptor err(workplace() / "err", O_WRONLY | O_CREAT | O_TRUNC);
    const pid_t child = start(copy_run("blocked"), in.ends[0], out.ends[1], err);
    wait_for_lines("blocked", 5);
    for (std::size_t lines = 0, before = 1; lines != before;) {
      before = log_lines("blocked");
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      lines = log_lines("blocked");
    }
    ::kill(child, SIGTERM);
    CHECK(wait_for(child) == 128 + SIGTERM);
    CHECK(log_lines("blocked") < 400);
  }
  CHECK(contains(bytes_of(workplace() / "err"), "lines were lost, but what was trained is saved"));
  CHECK(run_weft({"inspect", "blocked/last.safetensors"}).code == 0);
}

TEST_CASE("--fresh does not remove the checkpoint that it is to begin from") {
  undisturbed();
  check_refused(copy_run("straight") + Words{"--fresh", "--from", "straight/best.safetensors"},
                {"straight/best.safetensors, which --fresh would remove"});
}

TEST_CASE("a checkpoint that cannot be read is not taken for a damaged one") {
  workplace();
  fs::create_directories("unreadable/best.safetensors");
  CHECK_THROWS_AS(weft::is_whole("unreadable/best.safetensors"), weft::CheckpointError);
  CHECK_FALSE(weft::is_whole("unreadable/last.safetensors"));
  put("unreadable/last.safetensors", "damaged");
  CHECK_FALSE(weft::is_whole("unreadable/last.safetensors"));
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

TEST_CASE("a run that lost its best checkpoint says so and begins a new one") {
  const Words words = copy_run("lost");
  {
    const Background run(words);
    wait_for_lines("lost", 120);
    run.send(SIGTERM);
    run.wait();
  }
  put("lost/best.safetensors", "damaged");
  const Outcome rest = run_weft(words);
  CHECK(rest.code == 0);
  CHECK(contains(rest.out, "best.safetensors is missing or damaged"));
  CHECK(run_weft({"inspect", "lost/best.safetensors"}).code == 0);
}

TEST_CASE("a best checkpoint that is lost comes back from the one that was kept beside it") {
  const Words words = copy_run("kept") + Words{"--set", "training.keep_best=2"};
  {
    const Background run(words);
    wait_for_lines("kept", 120);
    run.send(SIGTERM);
    run.wait();
  }
  const std::string best = bytes_of("kept/best.safetensors");
  put("kept/best.safetensors", "damaged");
  CHECK(contains(run_weft(words + Words{"--set", "training.threads=1"}).out, "made anew from step-"));
  CHECK(run_weft({"inspect", "kept/best.safetensors"}).code == 0);
  CHECK(best.size() > 10);
  // A run that has come to its end mends it too.
  const std::string last_best = bytes_of("kept/best.safetensors");
  put("kept/best.safetensors", "damaged");
  const Outcome again = run_weft(words);
  CHECK(contains(again.out, "made anew from step-"));
  CHECK(contains(again.out, "is trained to its end"));
  CHECK(bytes_of("kept/best.safetensors") == last_best);
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
  const Words words = copy_run("single") + Words{"--set", "training.steps=100"};
  REQUIRE(run_weft(words).code == 0);
  const std::string best = bytes_of("single/best.safetensors");
  fs::remove("single/last.safetensors");
  const Outcome other = run_weft(words + Words{"--set", "model.d_feed_forward=48"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "made with another configuration"));
  CHECK(bytes_of("single/best.safetensors") == best);
  CHECK(run_weft(words).code == 0);  // the same run again, as after a kill in the middle of it
  CHECK(bytes_of("single/best.safetensors") == best);
}

TEST_CASE("the configuration of a run may be given again from its folder, where it stays as it is") {
  trained();
  std::filesystem::create_directory("home");
  put("home/config.json", "// mine\n" + bytes_of("tiny.json").substr(3));
  REQUIRE(run_weft({"train", "home/config.json", "--run", "home", "--set", "training.steps=2"}).code == 0);
  CHECK(contains(bytes_of("home/config.json"), "// mine"));
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

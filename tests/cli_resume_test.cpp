// weft train through the real binary: how a run goes on after it was stopped or killed, or after what it left was lost.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli_stream.h"
#include "copy_run.h"
#include "weft/core/error.h"
#include "weft/train/run_folder.h"
#include "weft/train/stop_signal.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

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
  CHECK(step == kCopySteps);
}

}  // namespace

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

TEST_CASE("a run that is killed again and again goes on each time, to the same bytes") {
  undisturbed();
  const Words words = copy_run("killed");
  for (const std::size_t lines : {std::size_t{1}, std::size_t{7}, std::size_t{40}, std::size_t{51}, std::size_t{130}}) {
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
  const Words keeping{"--set", "training.keep_best=3",      "--set", "training.keep_last=2",
                      "--set", "training.validate_every=20"};
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
    REQUIRE(::fcntl(out.ends[1], F_SETPIPE_SZ, 8192) >= 8192);  // two pages: one that has anything is not written to
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
    CHECK(log_lines("blocked") < kCopySteps);
  }
  CHECK(contains(bytes_of(workplace() / "err"), "lines were lost, but what was trained is saved"));
  CHECK(run_weft({"inspect", "blocked/last.safetensors"}).code == 0);
}

TEST_CASE("a checkpoint that cannot be read is not taken for a damaged one") {
  workplace();
  fs::create_directories("unreadable/best.safetensors");
  CHECK_THROWS_AS(weft::is_whole("unreadable/best.safetensors"), weft::CheckpointError);
  CHECK_FALSE(weft::is_whole("unreadable/last.safetensors"));
  put("unreadable/last.safetensors", "damaged");
  CHECK_FALSE(weft::is_whole("unreadable/last.safetensors"));
}

TEST_CASE("a run that lost its best checkpoint says so and begins a new one") {
  const Words words = copy_run("lost");
  begin_run(words, "lost", 70);
  put("lost/best.safetensors", "damaged");
  const Outcome rest = run_weft(words);
  CHECK(rest.code == 0);
  CHECK(contains(rest.out, "best.safetensors is missing or damaged"));
  CHECK(run_weft({"inspect", "lost/best.safetensors"}).code == 0);
}

TEST_CASE("a best checkpoint that is lost comes back from the one that was kept beside it") {
  const Words words = copy_run("kept") + Words{"--set", "training.keep_best=2"};
  begin_run(words, "kept", 70);
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

TEST_CASE("a signal saves and ends a run whose output and errors nobody takes any more") {
  Pipe output;
  const Descriptor none("/dev/null", O_RDONLY);
  const std::string folder = "unread";
  const pid_t child = start(copy_run(folder), none, output.ends[1], output.ends[1]);
  wait_for_lines(folder, 30);
  const Descriptor filler("/proc/self/fd/" + std::to_string(output.ends[1]), O_WRONLY | O_NONBLOCK);
  const std::string part(4096, '.');
  while (::write(filler, part.data(), part.size()) > 0) {
  }
  ::kill(child, SIGTERM);
  CHECK(wait_for(child) == 128 + SIGTERM);
  CHECK(weft::is_whole(folder + "/last.safetensors"));
}

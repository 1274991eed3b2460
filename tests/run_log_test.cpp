#include "weft/train/run_log.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "limited_allocation.h"
#include "temporary_folder.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/train/run_files.h"

using namespace weft;
namespace fs = std::filesystem;

namespace {

struct Folder : TemporaryFolder {
  std::string log() const { return (path() / "log.jsonl").string(); }
};

void add(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

StepEntry step_at(Index step) { return {step, 2, 3.25, 0.0005, 1.5, 1000.5, 123456789, 7.75}; }

}  // namespace

TEST_CASE("lines have exactly these shapes and are in the file at once") {
  const Folder folder;
  RunLog log(folder.log(), 0);
  log.write(step_at(10));
  const std::string first =
      R"({"step":10,"epoch":2,"loss":3.25,"learning_rate":0.0005,"grad_norm":1.5,"tokens_per_second":1000.5,)"
      R"("peak_bytes":123456789,"elapsed_seconds":7.75})"
      "\n";
  CHECK(bytes_of(folder.log()) == first);
  log.write(ValidationEntry{10, 2.5, 12.5, 0.5, 0.25, 34.5, 56.75});
  CHECK(bytes_of(folder.log()) == first +
                                      R"({"step":10,"validation":{"loss":2.5,"perplexity":12.5,"token_accuracy":0.5,)"
                                      R"("exact_match":0.25,"bleu":34.5,"chrf":56.75}})"
                                      "\n");
}

TEST_CASE("events read back, are dropped with later steps, and rollbacks that were not saved are too") {
  const Folder folder;
  {
    RunLog log(folder.log(), 0);
    log.write(EventEntry{0, "rollback", 1, "back\nto the start"});
    log.write(step_at(3));
    log.write(EventEntry{4, "skipped", 1, "of \xE9.txt"});
    log.write(EventEntry{4, "rollback", 2, "back"});
    log.write(EventEntry{9, "skipped", 2, "later"});
  }
  CHECK(contains(bytes_of(folder.log()), R"({"step":0,"event":"rollback","count":1,"text":"back\nto the start"})"));
  std::istringstream lines(bytes_of(folder.log()));
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
  const auto kept = [&](Index step, Index rollbacks) {
    const std::string before = bytes_of(folder.log());
    { const RunLog log(folder.log(), step, rollbacks); }
    std::string text;
    for (const EventEntry& e : read_run_log(folder.log()).events) text += e.event + std::to_string(e.count) + " ";
    put(folder.log(), before);
    return text;
  };
  CHECK(kept(9, 2) == "rollback1 skipped1 rollback2 skipped2 ");
  CHECK(kept(8, 2) == "rollback1 skipped1 rollback2 ");
  CHECK(kept(4, 1) == "rollback1 skipped1 ");
  CHECK(kept(0, 1) == "rollback1 ");
  CHECK(kept(0, 0) == "");
  CHECK(contains(read_run_log(folder.log()).events.at(1).text, ".txt"));
}

TEST_CASE("numbers that are not finite become null, and read back as NaN") {
  const Folder folder;
  RunLog log(folder.log(), 0);
  StepEntry entry = step_at(1);
  entry.loss = std::nan("");
  entry.grad_norm = std::numeric_limits<double>::infinity();
  log.write(entry);
  log.write(
      ValidationEntry{1, 1e3, std::numeric_limits<double>::infinity(), 0.5, std::nan(""), std::nan(""), std::nan("")});
  std::istringstream lines(bytes_of(folder.log()));
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
  CHECK(contains(bytes_of(folder.log()), "\"loss\":null"));

  const RunLogEntries read = read_run_log(folder.log());
  REQUIRE(read.steps.size() == 1);
  REQUIRE(read.validations.size() == 1);
  CHECK(std::isnan(read.steps[0].loss));
  CHECK(std::isnan(read.steps[0].grad_norm));
  CHECK(read.steps[0].learning_rate == 0.0005);
  CHECK(read.steps[0].peak_bytes == 123456789);
  CHECK(read.steps[0].elapsed_seconds == 7.75);
  CHECK(read.validations[0].perplexity == std::numeric_limits<double>::infinity());  // as the loss says
  CHECK(std::isnan(read.validations[0].bleu));
  CHECK(std::isnan(read.validations[0].chrf));
  CHECK(read.validations[0].loss == 1e3);
  CHECK(read.validations[0].token_accuracy == 0.5);
}

TEST_CASE("a validation of an earlier version has no chrF") {
  const Folder folder;
  add(folder.log(),
      R"({"step":3,"validation":{"loss":2.5,"perplexity":12.5,"token_accuracy":0.5,"exact_match":0.25,"bleu":34.5}})"
      "\n");
  const RunLogEntries read = read_run_log(folder.log());
  REQUIRE(read.validations.size() == 1);
  CHECK(read.validations[0].bleu == 34.5);
  CHECK(std::isnan(read.validations[0].chrf));
}

TEST_CASE("resuming drops later steps and a line that was cut short") {
  const Folder folder;
  {
    RunLog log(folder.log(), 0);
    for (const Index step : {10, 20, 30}) {
      log.write(step_at(step));
      log.write(ValidationEntry{step, 2, 7, 0.5, 0.25, 30, 50});
    }
  }
  const std::string whole = bytes_of(folder.log());
  std::filesystem::resize_file(folder.log(), whole.size() - 1);  // an editor took the last line's end away
  CHECK(read_run_log(folder.log()).validations.size() == 3);
  RunLog(folder.log(), 30);
  CHECK(bytes_of(folder.log()) == whole);
  std::filesystem::resize_file(folder.log(), whole.size() - 2);
  CHECK(read_run_log(folder.log()).validations.size() == 2);
  put(folder.log(), whole);
  add(folder.log(), R"({"step":15,"epo)");
  CHECK(read_run_log(folder.log()).steps.size() == 3);
  {
    RunLog log(folder.log(), 20);
    const std::string kept = bytes_of(folder.log());
    CHECK(kept == whole.substr(0, kept.size()));
    log.write(step_at(21));
  }
  const RunLogEntries read = read_run_log(folder.log());
  REQUIRE(read.steps.size() == 3);
  CHECK(read.steps[1].step == 20);
  CHECK(read.steps[2].step == 21);
  REQUIRE(read.validations.size() == 2);
  CHECK(read.validations[1].step == 20);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // nothing unfinished is left
  RunLog fresh(folder.log(), 0);
  CHECK(bytes_of(folder.log()).empty());
}

TEST_CASE("the memory is the most of all sessions, not of the last") {
  const Folder folder;
  { RunLog(folder.log(), 0).write(step_at(10)); }
  RunLog log(folder.log(), 10);
  StepEntry less = step_at(20), more = step_at(30);
  less.peak_bytes -= 1;
  more.peak_bytes += 1;
  log.write(less);
  log.write(more);
  const RunLogEntries read = read_run_log(folder.log());
  REQUIRE(read.steps.size() == 3);
  CHECK(read.steps[1].peak_bytes == step_at(10).peak_bytes);
  CHECK(read.steps[2].peak_bytes == more.peak_bytes);
}

TEST_CASE("a log that is not there has no entries, and resuming starts it") {
  const Folder folder;
  CHECK(read_run_log(folder.log()).steps.empty());
  RunLog log(folder.log(), 5);
  log.write(step_at(6));
  CHECK(read_run_log(folder.log()).steps.size() == 1);
}

TEST_CASE("the time of entries that resuming drops was spent all the same") {
  const Folder folder;
  const auto at = [](Index step, double seconds) {
    StepEntry entry = step_at(step);
    entry.elapsed_seconds = seconds;
    return entry;
  };
  {
    RunLog log(folder.log(), 0);
    log.write(at(10, 5));
    log.write(EventEntry{10, "rollback", 1, "back"});
    log.write(at(15, 8.5));
    log.write(ValidationEntry{15, 2.5, 12.5, 0.5, 0.25, 34.5, 56.75});
  }
  RunLog log(folder.log(), 10);
  CHECK(log.kept_seconds() == 8.5);
  CHECK(read_run_log(folder.log()).steps.size() == 1);
  log.write(at(12, 9));
  CHECK(RunLog(folder.log(), 12).kept_seconds() == 9);
  CHECK(RunLog(folder.log(), 1).kept_seconds() == 9);  // none is kept
  CHECK(RunLog(folder.log(), 1).kept_seconds() == 0);
}

TEST_CASE("going on with a long log takes little memory") {
  const Folder folder;
  std::string text;
  {
    RunLog log(folder.log(), 0);
    log.write(step_at(7));
    log.write(ValidationEntry{7, 2.5, 12.5, 0.5, 0.25, 34.5, 56.75});
    log.write(EventEntry{7, "skipped", 1, "of a.txt"});
    const std::string lines = bytes_of(folder.log());
    while (text.size() < 2'000'000) text += lines;
  }
  put(folder.log(), text + R"({"step":8,"epo)");
  {
    const LimitedAllocation limit(200'000);
    CHECK(RunLog(folder.log(), 7).kept_seconds() == 7.75);
  }
  CHECK(bytes_of(folder.log()) == text);
  const RunLogEntries read = read_run_log(folder.log());
  CHECK(read.steps.size() == read.validations.size());
  CHECK(read.steps.size() == read.events.size());
}

TEST_CASE("a line of a step reads back the same however it is written") {
  const Folder folder;
  const std::string line =
      R"({"step":10,"epoch":2,"loss":0.1,"learning_rate":5e-324,"grad_norm":-1.7976931348623157e+308,)"
      R"("tokens_per_second":null,"peak_bytes":9223372036854775807,"elapsed_seconds":7.75})";
  std::string spaced;
  for (const char c : line) spaced += c == ':' ? std::string(" : ") : std::string(1, c);
  std::string whole = line;
  whole.replace(whole.find("null"), 4, "0.30000000000000004");
  std::string hidden = whole;
  hidden.replace(hidden.find("0.1"), 3, "nan");
  put(folder.log(), line + "\n" + spaced + "\n" + whole + "\n");
  const RunLogEntries read = read_run_log(folder.log());
  REQUIRE(read.steps.size() == 3);
  for (const StepEntry& e : read.steps) {
    CHECK(e.step == 10);
    CHECK(e.epoch == 2);
    CHECK(e.loss == 0.1);
    CHECK(e.learning_rate == 5e-324);
    CHECK(e.grad_norm == -std::numeric_limits<double>::max());
    CHECK(e.peak_bytes == std::numeric_limits<Index>::max());
    CHECK(e.elapsed_seconds == 7.75);
  }
  CHECK(std::isnan(read.steps[0].tokens_per_second));
  CHECK(read.steps[2].tokens_per_second == 0.30000000000000004);
  put(folder.log(), hidden + "\n");
  CHECK_THROWS_SAYING(read_run_log(folder.log()), "log.jsonl:1: ", DataError);
}

TEST_CASE("what cannot be looked at is not taken for missing: a log, a text of a run, a folder") {
  const Folder folder;
  fs::create_symlink("log.jsonl", folder.log());  // to itself
  CHECK_THROWS_SAYING(read_run_log(folder.log()), "log.jsonl: cannot be looked at: ", Error);
  CHECK_THROWS_SAYING(RunLog(folder.log(), 5), "log.jsonl: cannot be looked at: ", Error);
  DataConfig data;
  data.subword_model = folder.log();
  CHECK_THROWS_SAYING(run_file_hashes(data), "log.jsonl: cannot be looked at: ", Error);
  CHECK_THROWS_SAYING(names_in(folder.log()), "log.jsonl: cannot be looked at: ", Error);
  CHECK(names_in(folder.write("file", "")).empty());
  CHECK(names_in(folder / "none").empty());
  CHECK(names_in(folder.path()).size() == 2);
  CHECK_FALSE(is_there(folder / "none"));
  CHECK_FALSE(is_there(folder / "file" / "below"));
  CHECK_THROWS_SAYING(is_file(folder.log()), "log.jsonl: cannot be looked at: ", Error);
  CHECK_THROWS_SAYING(is_folder(folder.log()), "log.jsonl: cannot be looked at: ", Error);
  CHECK(is_file(folder / "file"));
  CHECK_FALSE(is_folder(folder / "file"));
  CHECK(is_folder(folder.path()));
  CHECK_FALSE(is_file(folder.path()));
  CHECK_FALSE(is_folder(folder / "none"));
  data.subword_model = (folder / "none").string();
  CHECK(run_file_hashes(data) == std::vector<std::uint64_t>{0});
}

TEST_CASE("a line that is no entry is named") {
  for (const char* const bad : {"{\"step\":1}", "[1]", "7", "{\"step\":", "{\"step\":1,\"validation\":3}", "\xff"}) {
    const Folder folder;
    { RunLog(folder.log(), 0).write(step_at(1)); }
    add(folder.log(), std::string(bad) + "\n");
    CAPTURE(bad);
    CHECK_THROWS_SAYING(read_run_log(folder.log()), "log.jsonl:2: ", DataError);
  }
}

TEST_CASE("a line that is no entry makes a short message, however long it is") {
  const Folder folder;
  put(folder.log(), "\"" + std::string(100'000, 'x') + "\n");
  const std::string message = thrown_text<DataError>([&] { read_run_log(folder.log()); });
  CHECK(contains(message, "log.jsonl:1: not an entry of a training log ("));
  CHECK(contains(message, "); remove the line"));
  CHECK(message.size() < 500 + folder.log().size());
}

TEST_CASE("a line that is longer than any of a log is refused and not read to its end") {
  const Folder folder;
  put(folder.log(), std::string(3 << 20, ' '));
  CHECK_THROWS_SAYING(read_run_log(folder.log()), "has a line of more than 1048576 bytes", DataError);
  CHECK_FALSE(is_run_log(folder.log()));
}

TEST_CASE("a log that begins anew leaves that of a copy by hard links as it is") {
  const Folder folder;
  { RunLog(folder.log(), 0).write(step_at(1)); }
  const std::string before = bytes_of(folder.log());
  fs::create_hard_link(folder.log(), folder / "copy");
  RunLog(folder.log(), 0).write(step_at(2));
  CHECK(bytes_of(folder / "copy") == before);
  CHECK(read_run_log(folder.log()).steps.at(0).step == 2);
}

TEST_CASE("a full disk and a folder that is not there are errors that name the file") {
  if (fs::exists("/dev/full")) {
    CHECK_THROWS_SAYING(AppendedFile("/dev/full").write("x"), "/dev/full: cannot be written: No space left", Error);
    CHECK_THROWS_SAYING(RunLog("/dev/full", 0), "/dev/full: cannot be written: it is a folder or a device", Error);
    CHECK_FALSE(is_run_log("/dev/full"));
  }
  const Folder folder;
  const std::string missing = (folder / "none" / "log.jsonl").string();
  CHECK_THROWS_SAYING(RunLog(missing, 0), missing + ": cannot be written: ", Error);
}

// The log of a training run, log.jsonl: one JSON object a line, appended and flushed as training goes.
// Every complete line is valid JSON; numbers that are not finite are null. A line that a crash cut short is
// dropped.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/core/file.h"
#include "weft/core/types.h"

namespace weft {

/// What was measured over the updates since the entry before.
struct StepEntry {
  Index step = 0, epoch = 0;
  double loss = 0;  ///< per target token, in nats
  double learning_rate = 0;
  double grad_norm = 0;          ///< before clipping
  double tokens_per_second = 0;  ///< target tokens
  Index peak_bytes = 0;          ///< of tensor memory, the most in any session so far
  double elapsed_seconds = 0;
};

/// Scores on the validation set; NaN for what was not measured.
struct ValidationEntry {
  Index step = 0;
  double loss = 0, perplexity = 0, token_accuracy = 0, exact_match = 0, bleu = 0, chrf = 0;
};

/// Something that does not happen in an ordinary run.
struct EventEntry {
  Index step = 0;     ///< after which training goes on; of "stopped", the one that failed
  std::string event;  ///< "stopped", "skipped", "rollback" or "explosion"
  Index count = 0;    ///< of such events in the run so far, this one included; they count from 1
  std::string text;   ///< for people
};

/// All entries of a log, each kind in the order written.
struct RunLogEntries {
  std::vector<StepEntry> steps;
  std::vector<ValidationEntry> validations;
  std::vector<EventEntry> events = {};
};

/// The scores as members of a JSON object, without its braces; null for what is not finite.
std::string json_scores(const ValidationEntry& entry);

/// Reads a log back; null reads as NaN, and a file that does not exist as no entries.
/// Throws DataError with file and line for a line that is no entry, Error if the file cannot be read.
RunLogEntries read_run_log(const std::string& path);

/// Whether a file may be the log of a run, by its first line: it is empty, or that is an entry, or the beginning of one.
/// A folder, a pipe or a device is none. Throws Error if it cannot be read.
bool is_run_log(const std::string& path);

/// Appends entries to a log.
class RunLog {
 public:
  /// Opens a log for a run that goes on after resume_step: entries of later steps are dropped, in one rename,
  /// so that they do not appear twice, and so are rollbacks after the first `rollbacks`. 0 and 0 put a new, empty
  /// log in the place of what is there. Reads the log once, in little memory, however long it is. Throws Error if the file cannot be read or written,
  /// DataError for lines that are no entries.
  RunLog(std::string path, Index resume_step, Index rollbacks = 0);

  /// Appends one entry; it is in the file when this returns. Throws Error with the file's name, as on a full
  /// disk.
  void write(const StepEntry& entry);
  void write(const ValidationEntry& entry);
  void write(const EventEntry& entry);

  /// The most elapsed_seconds of the log as it was found, 0 without any: the time of entries that were dropped was spent
  /// all the same.
  double kept_seconds() const { return kept_seconds_; }

 private:
  void keep_until(Index last_step, Index rollbacks);
  void write_line(std::string line);

  std::string path_;
  double kept_seconds_ = 0;
  Index kept_bytes_ = 0;  // the most peak_bytes of the entries that were kept
  std::unique_ptr<AppendedFile> file_;
};

}  // namespace weft

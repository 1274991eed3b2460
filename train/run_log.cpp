// The log's three shapes of lines in one place, written and read.
#include "weft/train/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/core/c_locale.h"
#include "weft/core/error.h"
#include "weft/core/folder.h"
#include "weft/core/safetensors_header.h"
#include "weft/train/json_text.h"
#include "weft/train/output_file.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEntryBegins = R"({"step":)";

/// The lines of a log, one at a time. What follows the last line's end was cut short, unless it is whole JSON, as where an
/// editor took that end away. None without a file.
class LogLines {
 public:
  explicit LogLines(const std::string& path) : path_(path) {
    if (is_there(path)) file_.emplace(path);  // which refuses a pipe or a device, which may never end
  }

  /// Reads the next line, with its end; false after the last, with what was cut short in `line`. Throws DataError for one that no log has, for its length.
  bool next(std::string& line) {
    line.clear();
    while (true) {
      const std::size_t end = part_.find('\n', begin_);
      line.append(part_, begin_, end == part_.npos ? end : end + 1 - begin_);
      begin_ = end == part_.npos ? 0 : end + 1;
      if (line.size() > kMostLineBytes) {
        throw DataError(fmt::format("{}: has a line of more than {} bytes, which no training log has; move it away",
                                    path_, kMostLineBytes));
      }
      if (end != part_.npos) return true;
      part_.resize(file_ ? static_cast<std::size_t>(std::min(kPartBytes, file_->size() - read_)) : 0);
      if (part_.empty()) {
        if (line.empty() || !Json::accept(line)) return false;
        line += '\n';
        return true;
      }
      file_->read_at(read_, std::as_writable_bytes(std::span(part_)));
      read_ += part_.size();
    }
  }

 private:
  static constexpr std::uint64_t kPartBytes = 1 << 16;
  static constexpr std::size_t kMostLineBytes = 1 << 20;

  const std::string& path_;
  std::optional<InputFile> file_;
  std::uint64_t read_ = 0;
  std::string part_;       // of the file, up to `read_`
  std::size_t begin_ = 0;  // of the next line in it
};

double number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

StepEntry step_entry(const Json& json) {
  return {json.at("step").get<Index>(),       json.at("epoch").get<Index>(),     number(json.at("loss")),
          number(json.at("learning_rate")),   number(json.at("grad_norm")),      number(json.at("tokens_per_second")),
          json.at("peak_bytes").get<Index>(), number(json.at("elapsed_seconds"))};
}

ValidationEntry validation_entry(const Json& json) {
  const Json& scores = json.at("validation");
  const double loss = number(scores.at("loss")), perplexity = number(scores.at("perplexity"));
  return {json.at("step").get<Index>(),
          loss,
          std::isnan(perplexity) ? std::exp(loss) : perplexity,  // if infinite
          number(scores.at("token_accuracy")),
          number(scores.at("exact_match")),
          number(scores.at("bleu")),
          number(scores.value("chrf", Json()))};  // which a log of an earlier version lacks
}

EventEntry event_entry(const Json& json) {
  return {json.at("step").get<Index>(), json.at("event").get<std::string>(), json.at("count").get<Index>(),
          json.at("text").get<std::string>()};
}

/// Reads a line just as write() makes it of a StepEntry, which nearly all of a long log are, much faster than the JSON
/// library; nothing for any other.
std::optional<StepEntry> written_step_entry(std::string_view line) {
  const auto read = [&line](std::string_view key, auto& value) {
    if (!line.starts_with(key)) return false;
    line.remove_prefix(key.size());
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc()) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return true;
  };
  const auto read_real = [&](std::string_view key, double& value) {
    return read(key, value) && std::isfinite(value);  // what is not is null in JSON
  };
  StepEntry e;
  const bool read_all =
      read(R"({"step":)", e.step) && read(R"(,"epoch":)", e.epoch) && read_real(R"(,"loss":)", e.loss) &&
      read_real(R"(,"learning_rate":)", e.learning_rate) && read_real(R"(,"grad_norm":)", e.grad_norm) &&
      read_real(R"(,"tokens_per_second":)", e.tokens_per_second) && read(R"(,"peak_bytes":)", e.peak_bytes) &&
      read_real(R"(,"elapsed_seconds":)", e.elapsed_seconds) && line == "}\n";
  return read_all ? std::optional(e) : std::nullopt;
}

/// Adds the entry of one line to `entries` and returns its step.
Index parse_line(const std::string& path, std::size_t line_number, const std::string& line, RunLogEntries& entries) {
  if (const auto written = written_step_entry(line)) {
    entries.steps.push_back(*written);
    return written->step;
  }
  try {
    const CLocale for_fractions;
    const Json json = Json::parse(line);
    if (json.contains("validation")) {
      entries.validations.push_back(validation_entry(json));
      return entries.validations.back().step;
    }
    if (json.contains("event")) {
      entries.events.push_back(event_entry(json));
      return entries.events.back().step;
    }
    entries.steps.push_back(step_entry(json));
    return entries.steps.back().step;
  } catch (const Json::exception& e) {
    constexpr Index kMostColumns = 200;  // the library repeats what it read
    throw DataError(fmt::format("{}:{}: not an entry of a training log ({}); remove the line", path, line_number,
                                clip_text(e.what(), kMostColumns)));
  }
}

}  // namespace

std::string json_scores(const ValidationEntry& e) {
  return fmt::format(R"("loss":{},"perplexity":{},"token_accuracy":{},"exact_match":{},"bleu":{},"chrf":{})",
                     json_number(e.loss), json_number(e.perplexity), json_number(e.token_accuracy),
                     json_number(e.exact_match), json_number(e.bleu), json_number(e.chrf));
}

RunLogEntries read_run_log(const std::string& path) {
  RunLogEntries entries;
  std::size_t line_number = 0;
  LogLines lines(path);
  for (std::string line; lines.next(line);) parse_line(path, ++line_number, line, entries);
  return entries;
}

bool is_run_log(const std::string& path) {
  if (!is_file(path)) return false;
  LogLines lines(path);
  std::string line;
  RunLogEntries entry;
  try {
    if (!lines.next(line)) {
      return kEntryBegins.substr(0, line.size()) == std::string_view(line).substr(0, kEntryBegins.size());
    }
    parse_line(path, 1, line, entry);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

RunLog::RunLog(std::string path, Index resume_step, Index rollbacks) : path_(std::move(path)) {
  if (is_there(path_)) require_not_protected(path_, path_);
  if (resume_step > 0 || rollbacks > 0) {
    keep_until(resume_step, rollbacks);
  } else {
    write_file(path_, "");  // a new one: a copy of the folder by hard links keeps the old one
  }
  file_ = std::make_unique<AppendedFile>(path_);
}

/// Keeps the entries up to a step and a rollback: one that was written, but not saved, is made again.
void RunLog::keep_until(Index last_step, Index rollbacks) {
  LogLines lines(path_);
  write_file_atomically(path_, [&](FileWriter& kept) {
    std::size_t line_number = 0;
    for (std::string line; lines.next(line);) {
      RunLogEntries entry;  // the one of this line
      const Index step = parse_line(path_, ++line_number, line, entry);
      for (const StepEntry& e : entry.steps) kept_seconds_ = std::max(kept_seconds_, e.elapsed_seconds);
      const bool unsaved = std::any_of(entry.events.begin(), entry.events.end(), [&](const EventEntry& e) {
        return e.event == "rollback" && e.count > rollbacks;
      });
      if (step > last_step || unsaved) continue;
      for (const StepEntry& e : entry.steps) kept_bytes_ = std::max(kept_bytes_, e.peak_bytes);
      kept.write(line);
    }
  });
}

void RunLog::write(const StepEntry& e) {
  write_line(fmt::format(
      R"({{"step":{},"epoch":{},"loss":{},"learning_rate":{},"grad_norm":{},"tokens_per_second":{},"peak_bytes":{},)"
      R"("elapsed_seconds":{}}})",
      e.step, e.epoch, json_number(e.loss), json_number(e.learning_rate), json_number(e.grad_norm),
      json_number(e.tokens_per_second), std::max(e.peak_bytes, kept_bytes_), json_number(e.elapsed_seconds)));
}

void RunLog::write(const ValidationEntry& e) {
  write_line(fmt::format(R"({{"step":{},"validation":{{{}}}}})", e.step, json_scores(e)));
}

void RunLog::write(const EventEntry& e) {
  write_line(fmt::format(R"({{"step":{},"event":{},"count":{},"text":{}}})", e.step, printable(e.event), e.count,
                         printable(e.text)));
}

void RunLog::write_line(std::string line) { file_->write(line += '\n'); }

}  // namespace weft

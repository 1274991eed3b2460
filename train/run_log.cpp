// The log's three shapes of lines in one place, written and read.
#include "weft/train/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/safetensors_header.h"
#include "weft/train/json_text.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

/// The complete lines of a file, with their ends; what follows the last one was cut short. None without a file.
std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return lines;
  const InputFile file(path);  // a pipe or a device may never end
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end + 1 - begin));
  }
  return lines;
}

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
  return {json.at("step").get<Index>(),        number(scores.at("loss")),        number(scores.at("perplexity")),
          number(scores.at("token_accuracy")), number(scores.at("exact_match")), number(scores.at("bleu")),
          number(scores.value("chrf", Json()))};  // which a log of an earlier version lacks
}

EventEntry event_entry(const Json& json) {
  return {json.at("step").get<Index>(), json.at("event").get<std::string>(), json.at("count").get<Index>(),
          json.at("text").get<std::string>()};
}

/// Adds the entry of one line to `entries` and returns its step.
Index parse_line(const std::string& path, std::size_t line_number, const std::string& line, RunLogEntries& entries) {
  try {
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
    throw DataError(
        fmt::format("{}:{}: not an entry of a training log ({}); remove the line", path, line_number, e.what()));
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
  for (const std::string& line : read_lines(path)) parse_line(path, ++line_number, line, entries);
  return entries;
}

RunLog::RunLog(std::string path, Index resume_step, Index rollbacks) : path_(std::move(path)) {
  const bool resumes = resume_step > 0 || rollbacks > 0;
  if (resumes) keep_until(resume_step, rollbacks);
  file_ = std::make_unique<AppendedFile>(path_, !resumes);
}

/// Keeps the entries up to a step and a rollback: one that was written, but not saved, is made again.
void RunLog::keep_until(Index last_step, Index rollbacks) {
  std::string kept;
  RunLogEntries entries;
  std::size_t line_number = 0;
  for (const std::string& line : read_lines(path_)) {
    const std::size_t events = entries.events.size();
    if (parse_line(path_, ++line_number, line, entries) > last_step) continue;
    if (entries.events.size() > events && entries.events.back().event == "rollback" &&
        entries.events.back().count > rollbacks) {
      continue;
    }
    kept += line;
    if (entries.steps.empty()) continue;
    kept_seconds_ = entries.steps.back().elapsed_seconds;
    kept_bytes_ = entries.steps.back().peak_bytes;
  }
  write_file(path_, kept);
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

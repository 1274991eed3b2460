// The log's two shapes of lines in one place, written and read. The JSON library prints the shortest digits
// that read back as the same number, whatever the locale, and null for what is not finite.
#include "weft/train/run_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/file.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& path) {
  throw Error(fmt::format("{}: cannot write: {}; see that its folder can be written and the disk is not full", path,
                          std::strerror(errno)));
}

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

/// Adds the entry of one line to `entries` and returns its step.
Index parse_line(const std::string& path, std::size_t line_number, const std::string& line, RunLogEntries& entries) {
  try {
    const Json json = Json::parse(line);
    if (json.contains("validation")) {
      entries.validations.push_back(validation_entry(json));
      return entries.validations.back().step;
    }
    entries.steps.push_back(step_entry(json));
    return entries.steps.back().step;
  } catch (const Json::exception& e) {
    throw DataError(
        fmt::format("{}:{}: not an entry of a training log ({}); remove the line", path, line_number, e.what()));
  }
}

}  // namespace

RunLogEntries read_run_log(const std::string& path) {
  RunLogEntries entries;
  std::size_t line_number = 0;
  for (const std::string& line : read_lines(path)) parse_line(path, ++line_number, line, entries);
  return entries;
}

RunLog::RunLog(std::string path, Index resume_step) : path_(std::move(path)), file_(nullptr, &std::fclose) {
  if (resume_step > 0) keep_until(resume_step);
  file_.reset(std::fopen(path_.c_str(), resume_step > 0 ? "ab" : "wb"));
  if (!file_) fail(path_);
}

/// Keeps the entries up to a step.
void RunLog::keep_until(Index last_step) {
  std::string kept;
  RunLogEntries entries;
  std::size_t line_number = 0;
  for (const std::string& line : read_lines(path_)) {
    if (parse_line(path_, ++line_number, line, entries) > last_step) continue;
    kept += line;
    if (!entries.steps.empty()) kept_seconds_ = entries.steps.back().elapsed_seconds;
  }
  write_file(path_, kept);
}

void RunLog::write(const StepEntry& e) {
  write_line(Json{{"step", e.step},
                  {"epoch", e.epoch},
                  {"loss", e.loss},
                  {"learning_rate", e.learning_rate},
                  {"grad_norm", e.grad_norm},
                  {"tokens_per_second", e.tokens_per_second},
                  {"peak_bytes", e.peak_bytes},
                  {"elapsed_seconds", e.elapsed_seconds}}
                 .dump());
}

void RunLog::write(const ValidationEntry& e) {
  write_line(Json{{"step", e.step},
                  {"validation",
                   {{"loss", e.loss},
                    {"perplexity", e.perplexity},
                    {"token_accuracy", e.token_accuracy},
                    {"exact_match", e.exact_match},
                    {"bleu", e.bleu},
                    {"chrf", e.chrf}}}}
                 .dump());
}

void RunLog::write_line(const std::string& line) {
  const std::string text = line + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) fail(path_);
}

}  // namespace weft

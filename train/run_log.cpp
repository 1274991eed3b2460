// The log's two shapes of lines in one place, written and read. The JSON library prints the shortest digits
// that read back as the same number, whatever the locale, and null for what is not finite.
#include "weft/train/run_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "weft/core/error.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

[[noreturn]] void fail(const std::string& path, std::string_view what) {
  throw Error(fmt::format("{}: cannot {}: {}; see that its folder can be written and the disk is not full",
                          path, what, std::strerror(errno)));
}

File open(const std::string& path, const char* mode) {
  return {std::fopen(path.c_str(), mode), &std::fclose};
}

void append(std::FILE* file, const std::string& path, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0)
    fail(path, "write");
}

/// Returns the complete lines of a file, with their ends.
std::vector<std::string> read_lines(const std::string& path) {
  const File file = open(path, "rb");
  if (!file) {
    if (errno == ENOENT) return {};
    fail(path, "read");
  }
  std::vector<std::string> lines(1);
  char block[1 << 14];
  while (const std::size_t size = std::fread(block, 1, sizeof block, file.get())) {
    for (const char c : std::string_view(block, size)) {
      lines.back() += c;
      if (c == '\n') lines.emplace_back();
    }
  }
  if (std::ferror(file.get()) != 0) fail(path, "read");
  lines.pop_back();  // what follows the last line end was cut short
  return lines;
}

double number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

StepEntry step_entry(const Json& json) {
  return {json.at("step").get<Index>(),
          json.at("epoch").get<Index>(),
          number(json.at("loss")),
          number(json.at("learning_rate")),
          number(json.at("grad_norm")),
          number(json.at("tokens_per_second")),
          json.at("peak_bytes").get<Index>(),
          number(json.at("elapsed_seconds"))};
}

ValidationEntry validation_entry(const Json& json) {
  const Json& scores = json.at("validation");
  return {json.at("step").get<Index>(),     number(scores.at("loss")),
          number(scores.at("perplexity")),  number(scores.at("token_accuracy")),
          number(scores.at("exact_match")), number(scores.at("bleu"))};
}

/// Adds the entry of one line to `entries` and returns its step.
Index parse_line(const std::string& path, std::size_t line_number, const std::string& line,
                 RunLogEntries& entries) {
  try {
    const Json json = Json::parse(line);
    if (json.contains("validation")) {
      entries.validations.push_back(validation_entry(json));
      return entries.validations.back().step;
    }
    entries.steps.push_back(step_entry(json));
    return entries.steps.back().step;
  } catch (const Json::exception& e) {
    throw DataError(fmt::format("{}:{}: not an entry of a training log ({}); remove the line", path,
                                line_number, e.what()));
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
  file_ = open(path_, resume_step > 0 ? "ab" : "wb");
  if (!file_) fail(path_, "write");
}

/// Keeps the entries up to a step. The old log stays whole until the new one is.
void RunLog::keep_until(Index last_step) {
  std::string kept;
  RunLogEntries entries;
  std::size_t line_number = 0;
  for (const std::string& line : read_lines(path_)) {
    if (parse_line(path_, ++line_number, line, entries) > last_step) continue;
    kept += line;
    if (!entries.steps.empty()) kept_seconds_ = entries.steps.back().elapsed_seconds;
  }
  const std::string fresh = path_ + ".tmp";
  {
    const File file = open(fresh, "wb");
    if (!file) fail(fresh, "write");
    append(file.get(), fresh, kept);
  }
  if (std::rename(fresh.c_str(), path_.c_str()) != 0) fail(path_, "replace");
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
                    {"bleu", e.bleu}}}}
                 .dump());
}

void RunLog::write_line(const std::string& line) { append(file_.get(), path_, line + "\n"); }

}  // namespace weft

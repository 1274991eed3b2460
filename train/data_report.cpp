// The report of data_check.h in words and as JSON, with the same content.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "weft/train/data_check.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<Index, 4> kPercents = {50, 90, 95, 99};

Index longest(const SideReport& side) { return side.lengths.empty() ? 0 : side.lengths.rbegin()->first; }

std::vector<std::string> row(const std::string& name, const SideReport& side) {
  std::vector<std::string> cells{"  " + name, format_count(side.tokens)};
  for (const Index percent : kPercents) cells.push_back(format_count(side.percentile(percent)));
  cells.push_back(format_count(longest(side)));
  cells.push_back(fmt::format("{:.2f} %", 100 * side.unknown_rate()));
  cells.push_back(fmt::format("{:.2f}", side.characters_per_token()));
  return cells;
}

std::string to_text(const TextReport& report) {
  std::string text = report.split + (report.files.empty() ? "" : ":");
  for (const std::string& file : report.files) text += fmt::format(" {}", show_controls(file));
  text += fmt::format("\n  {} pairs", format_count(report.pairs));
  if (report.measured) {
    text += fmt::format(", {} kept, {} dropped: {} blank on a side, {} with more than {} tokens on a side\n",
                        format_count(report.kept), format_count(report.pairs - report.kept), format_count(report.blank),
                        format_count(report.too_long), format_count(report.longest));
    text +=
        format_table({{"  side", "tokens", "50 %", "90 %", "95 %", "99 %", "longest", "unknown", "characters a token"},
                      row("source", report.source),
                      row("target", report.target)},
                     "lrrrrrrrr");
  } else {
    text += "; their tokens are not known without vocabularies\n";
  }
  for (std::size_t i = 0; i < kOddities; ++i) {
    const auto oddity = static_cast<Oddity>(i);
    const Finding& finding = report.findings[oddity];
    if (finding.count == 0) continue;
    text +=
        fmt::format("  {}{}: {}\n", is_fault(oddity) ? "FAULT: " : "", meaning_of(oddity), format_count(finding.count));
    for (const Place& place : finding.first) text += fmt::format("    {}\n", show_controls(place.text()));
  }
  return text;
}

Json to_json(const SideReport& side) {
  Json lengths = Json::object();
  for (const Index percent : kPercents) lengths[fmt::format("p{}", percent)] = side.percentile(percent);
  lengths["max"] = longest(side);
  return {{"tokens", side.tokens},
          {"lengths", lengths},
          {"unknown_rate", side.unknown_rate()},
          {"characters_per_token", side.characters_per_token()}};
}

Json to_json(const TextReport& report) {
  Json findings = Json::array();
  for (std::size_t i = 0; i < kOddities; ++i) {
    const auto oddity = static_cast<Oddity>(i);
    const Finding& finding = report.findings[oddity];
    if (finding.count == 0) continue;
    Json places = Json::array();
    for (const Place& place : finding.first) {
      Json found{{"file", place.file}};
      if (place.line > 0) found["line"] = place.line;
      if (place.column > 0) found["byte"] = place.column;
      if (!place.note.empty()) found["note"] = place.note;
      places.push_back(found);
    }
    findings.push_back({{"name", name_of(oddity)},
                        {"meaning", meaning_of(oddity)},
                        {"fault", is_fault(oddity)},
                        {"count", finding.count},
                        {"first", places}});
  }
  Json json{{"split", report.split}, {"files", report.files}, {"pairs", report.pairs}};
  if (report.measured) {
    json["kept"] = report.kept;
    json["dropped"] = {{"blank", report.blank}, {"too_long", report.too_long}};
  }
  json["longest_allowed"] = report.longest;
  if (report.measured) {
    json["source"] = to_json(report.source);
    json["target"] = to_json(report.target);
  }
  json["findings"] = findings;
  return json;
}

}  // namespace

std::string format_report(const DataReport& report) {
  std::string text;
  for (const TextReport& part : report.texts) text += to_text(part) + "\n";
  if (report.source_vocabulary > 0) {
    text += fmt::format("vocabulary: {} source, {} target tokens\n", format_count(report.source_vocabulary),
                        format_count(report.target_vocabulary));
  }
  if (report.problems.empty()) return text + "training would take this text\n";
  text += "training would be refused:\n";
  for (const std::string& problem : report.problems) text += fmt::format("  {}\n", show_controls(problem));
  return text;
}

std::string report_json(const DataReport& report) {
  Json texts = Json::array();
  for (const TextReport& part : report.texts) texts.push_back(to_json(part));
  const Json json{{"usable", report.problems.empty()},
                  {"problems", report.problems},
                  {"source_vocabulary", report.source_vocabulary},
                  {"target_vocabulary", report.target_vocabulary},
                  {"texts", texts}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";  // a path may be any bytes
}

}  // namespace weft

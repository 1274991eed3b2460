#include "weft/train/config_texts.h"

#include <fmt/format.h>

#include <set>

#include "weft/core/error.h"
#include "weft/core/suggestion.h"

namespace weft {
namespace {

constexpr Index kLastColumn = 1000;
constexpr std::size_t kMostTexts = 10'000;
const std::vector<std::string> kTextKeys = {"source", "target", "tsv", "source_column", "target_column"};

std::string json_quoted(const std::string& text) {
  if (const auto shown = json_string(text)) return *shown;
  throw ConfigError(fmt::format("a configuration's text is not UTF-8: {}", text));
}

/// Reads one text, and collects what is wrong.
class TextReader {
 public:
  TextReader(std::string path, std::vector<std::string>& problems) : path_(std::move(path)), problems_(problems) {}

  TextFiles read(const FoundValue& found) {
    TextFiles files;
    if (!found.is_object) {
      problem("", fmt::format("is {}; must be an object with source and target, or with tsv", found.shown));
      return files;
    }
    bool columns = false;
    std::set<std::string> seen;
    for (const FoundValue& member : found.members) {
      const std::string& name = member.name;
      if (!seen.insert(name).second) problem("." + name, "is given twice");
      if (name == "source") {
        file(member, files.source);
      } else if (name == "target") {
        file(member, files.target);
      } else if (name == "tsv") {
        file(member, files.tsv);
      } else if (name == "source_column" || name == "target_column") {
        columns = true;
        column(member, name == "source_column" ? files.source_column : files.target_column);
      } else {
        const std::string meant = suggestion(name, kTextKeys);
        problem(
            "." + name,
            "is not a known key" +
                (meant.empty() ? "; a text has source and target, or tsv, source_column and target_column" : meant));
      }
    }
    if (sound_) check(files, columns);
    return files;
  }

 private:
  void problem(const std::string& below, const std::string& what) {
    problems_.push_back(fmt::format("{}{} {}", path_, below, what));
    sound_ = false;
  }
  void file(const FoundValue& member, std::string& name) {
    const auto* text = std::get_if<std::string>(&member.value);
    if (text == nullptr || text->empty()) {
      problem("." + member.name, fmt::format("is {}; must be the name of a file", member.shown));
    } else {
      name = *text;
    }
  }
  void column(const FoundValue& member, Index& number) {
    const auto* whole = std::get_if<Index>(&member.value);
    if (whole == nullptr || *whole < 1 || *whole > kLastColumn) {
      problem("." + member.name,
              fmt::format("is {}; must be a whole number, at least 1 and at most {}", member.shown, kLastColumn));
    } else {
      number = *whole;
    }
  }
  void check(const TextFiles& files, bool columns) {
    const bool pair = !files.source.empty() || !files.target.empty();
    if (files.tsv.empty()) {
      if (files.source.empty() || files.target.empty()) {
        problem("", pair ? fmt::format("has no {}", files.source.empty() ? "source" : "target")
                         : "names no file; give source and target, or tsv");
      } else if (columns) {
        problem("", "has columns, which belong to tsv; leave them out");
      }
    } else if (pair) {
      problem("", "has tsv and also source or target; leave out one of the two");
    } else if (files.source_column == files.target_column) {
      problem("", fmt::format("has column {} for source and target; choose two columns", files.source_column));
    }
  }

  std::string path_;
  std::vector<std::string>& problems_;
  bool sound_ = true;
};

}  // namespace

std::vector<TextFiles> read_text_list(const std::string& path, const FoundValue& found,
                                      std::vector<std::string>& problems) {
  std::vector<TextFiles> texts;
  if (!found.is_array) {
    problems.push_back(fmt::format("{} is {}; must be {}", path, found.shown, kTextListRule));
    return texts;
  }
  if (found.members.size() > kMostTexts) {
    problems.push_back(fmt::format("{} has {} texts; must be at most {}", path, found.members.size(), kMostTexts));
    return texts;
  }
  for (const FoundValue& member : found.members) {
    texts.push_back(TextReader(fmt::format("{}[{}]", path, texts.size()), problems).read(member));
  }
  return texts;
}

std::string show_text_list(const std::vector<TextFiles>& texts) {
  std::string shown;
  for (const TextFiles& files : texts) {
    shown += shown.empty() ? "" : ", ";
    shown += files.tsv.empty() ? fmt::format(R"({{"source": {}, "target": {}}})", json_quoted(files.source),
                                             json_quoted(files.target))
                               : fmt::format(R"({{"tsv": {}, "source_column": {}, "target_column": {}}})",
                                             json_quoted(files.tsv), files.source_column, files.target_column);
  }
  return "[" + shown + "]";
}

}  // namespace weft

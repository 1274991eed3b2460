// The documentation says what is there: its code is code that is built, and the files that it names exist.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/core/file.h"

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = WEFT_SOURCE_DIR;

/// What stands in a text between each `open` and the next `close`.
std::vector<std::string> between(const std::string& text, const std::string& open, const std::string& close) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    const std::size_t end = text.find(close, at);
    if (end == std::string::npos) break;
    found.push_back(text.substr(at, end - at));
    at = end + close.size();
  }
  return found;
}

/// The words in backquotes that look like paths of this tree: no spaces or wildcards, in one of its folders.
std::vector<std::string> paths_in(const std::string& text) {
  std::vector<std::string> paths;
  for (const std::string& word : between(text, "`", "`")) {
    const std::size_t slash = word.find('/');
    const bool plain = word.find_first_of(" <>*{}$\n\"") == std::string::npos;
    if (!plain || slash == std::string::npos || !fs::is_directory(kRoot / word.substr(0, slash))) continue;
    if (word.rfind("build/", 0) != 0 && word.rfind("runs/", 0) != 0) paths.push_back(word);
  }
  return paths;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// A text with one space wherever it has white space.
std::string spaced(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool white = c == ' ' || c == '\n';
    if (!white || !result.ends_with(' ')) result += white ? ' ' : c;
  }
  return result;
}

std::string without(std::string text, const std::string& part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
  return text;
}

/// Markdown without its fenced blocks, whose fences would pair up with other backquotes.
std::string prose(const std::string& markdown) {
  std::string text;
  bool fenced = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line.rfind("```", 0) == 0) {
      fenced = !fenced;
    } else if (!fenced) {
      text += line + "\n";
    }
  }
  return text;
}

/// The rows of all tables.
std::vector<std::string> rows_of(const std::string& markdown) {
  std::vector<std::string> rows;
  for (const std::string& line : lines_of(markdown)) {
    if (line.rfind("| ", 0) == 0) rows.push_back(line);
  }
  return rows;
}

}  // namespace

TEST_CASE("every piece of code in docs/extend.md stands as it is in the example") {
  const std::string page = weft::read_file(kRoot / "docs/extend.md");
  std::string example;
  for (const auto& entry : fs::directory_iterator(kRoot / "examples/gated_feed_forward")) {
    if (entry.is_regular_file() && entry.path().extension() != ".md") example += weft::read_file(entry.path()) + "\n";
  }
  for (const std::string language : {"cpp", "cmake", "json"}) {
    CAPTURE(language);
    const auto blocks = between(page, "\n```" + language + "\n", "\n```");
    CHECK_FALSE(blocks.empty());
    for (const std::string& block : blocks) CHECK_MESSAGE(example.find(block) != std::string::npos, block);
  }
}

TEST_CASE("the table in docs/architecture.md names files that exist") {
  const std::string page = weft::read_file(kRoot / "docs/architecture.md");
  std::string folder;
  int files = 0;
  for (const std::string& row : rows_of(page)) {
    const std::size_t bar = row.find('|', 1);
    const auto names = between(row.substr(0, bar), "`", "`");
    if (!names.empty()) folder = names[0];
    if (folder.empty()) continue;  // the head
    CHECK_MESSAGE(fs::is_directory(kRoot / folder), folder);
    const std::size_t second = row.find('|', bar + 1);
    for (const std::string& name : between(row.substr(bar, second - bar), "`", "`")) {
      if (name.find_first_of("*<") != std::string::npos) continue;
      const std::string path = folder + "/" + name;
      CHECK_MESSAGE(fs::exists(kRoot / path), path);
      ++files;
    }
  }
  CHECK(files > 50);
}

TEST_CASE("the files and folders that the documentation names exist") {
  const std::vector<std::string> pages = {"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/extend.md",
                                          "examples/gated_feed_forward/README.md"};
  for (const std::string& name : pages) {
    CAPTURE(name);
    const fs::path page = kRoot / name;
    const std::string text = prose(weft::read_file(page));
    for (const std::string& path : paths_in(text)) CHECK_MESSAGE(fs::exists(kRoot / path), path);
    for (std::string link : between(text, "](", ")")) {
      link = link.substr(0, link.find('#'));
      if (link.empty() || link.find("://") != std::string::npos) continue;
      CHECK_MESSAGE(fs::exists(page.parent_path() / link), link);
    }
  }
  CHECK(paths_in("`core/tensor.h` and `nowhere/tensor.h`, `a b/c`, `core/no_such.h`").size() == 2);
}

TEST_CASE("the test cases that docs/guarantees.md names exist") {
  const std::string text = without(spaced(prose(weft::read_file(kRoot / "docs/guarantees.md"))), "**");
  std::string path, code;
  int names = 0;
  for (std::size_t at = text.find_first_of("*`"); at != text.npos; at = text.find_first_of("*`", at + 1)) {
    const std::size_t end = text.find(text[at], at + 1);
    REQUIRE(end != text.npos);
    const std::string word = text.substr(at + 1, end - at - 1);
    const bool is_name = text[at] == '*';
    at = end;
    if (is_name) {
      CAPTURE(path);
      CAPTURE(word);
      CHECK(code.find("\"" + word + "\")") != code.npos);
      ++names;
    } else if (word.ends_with("_test.cpp")) {
      path = word;
      code = without(spaced(weft::read_file(kRoot / path)), "\" \"");  // joins the parts of one string
    }
  }
  CHECK(names > 50);
}

#include "weft/train/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/core/c_locale.h"
#include "weft/core/error.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

/// Iterator over the text that tells how far the parser has read, because its events carry no position.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *read_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** read_;
};

constexpr std::size_t kMemberLevels = 2;  // an array of objects

/// Takes the parser's events and keeps what a configuration needs: the root and two levels below it, and the members of
/// arrays and objects there.
class ValueReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool parse(std::string_view text) {
    const CLocale for_fractions;
    read_ = counted_ = begin_ = text.data();
    const Cursor begin(text.data(), &read_), end(text.data() + text.size(), &read_);
    return nlohmann::json::sax_parse(begin, end, this, nlohmann::json::input_format_t::json, true, true);
  }

  bool null() override { return value({{}, "null"}); }
  bool boolean(bool v) override { return value({v, v ? "true" : "false"}); }
  bool number_integer(std::int64_t v) override { return value({Index{v}, fmt::to_string(v)}); }
  bool number_unsigned(std::uint64_t v) override {
    if (v > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
      return value({static_cast<double>(v), fmt::to_string(v)});
    return value({static_cast<Index>(v), fmt::to_string(v)});
  }
  bool number_float(double v, const std::string& digits) override { return value({v, digits}); }
  bool string(std::string& v) override {
    if (has_controls(v)) return stop("a control character in a text");  // would cut a file's name, or a message
    return value({v, json_string(v).value()});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open({{}, "an object", true}); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open({{}, "an array", false, true}); }
  bool end_array() override { return close(); }
  bool key(std::string& v) override {
    const std::string quoted = json_string(v).value(), escaped = quoted.substr(1, quoted.size() - 2);
    if (!within_.empty()) {
      member_ = escaped;
      return true;
    }
    (depth_ == 1 ? section_ : name_) = escaped;
    line_ += std::count(counted_, read_, '\n');
    counted_ = read_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& e) override {
    error_position = position;
    error_token = token;
    error_text = e.what();
    return false;
  }

  FoundValue root;
  std::vector<ConfigEntry> entries;
  std::string limit;               // what was too much, if that ended the reading
  std::size_t error_position = 0;  // bytes read when the error showed
  std::string error_token;
  std::string error_text;

 private:
  bool value(FoundValue found) {
    place(std::move(found));
    return ++values_ <= kMostConfigValues || stop(fmt::format("more than {} values", kMostConfigValues));
  }
  /// Ends the reading, where the parser says nothing of itself.
  bool stop(std::string what) {
    limit = std::move(what);
    error_position = static_cast<std::size_t>(std::max<std::ptrdiff_t>(read_ - begin_, 1) - 1);
    return false;
  }
  /// Puts a value where it belongs; returns where it is, or null if that is too deep.
  FoundValue* place(FoundValue found) {
    if (within_.size() > kMemberLevels || (!within_.empty() && within_.back() == nullptr)) return nullptr;
    if (!within_.empty()) {
      FoundValue& parent = *within_.back();
      if (parent.is_object) found.name = member_;
      parent.members.push_back(std::move(found));
      return &parent.members.back();
    }
    if (depth_ == 0) {
      root = std::move(found);
      return &root;
    }
    entries.push_back({section_, depth_ == 1 ? std::nullopt : std::optional(name_), std::move(found), line_});
    return &entries.back().found;
  }
  bool open(const FoundValue& found) {
    if (++values_ > kMostConfigValues) return stop(fmt::format("more than {} values", kMostConfigValues));
    if (static_cast<std::size_t>(depth_) + within_.size() >= kDeepestConfig) {
      return stop(fmt::format("nested more than {} deep", kDeepestConfig));
    }
    FoundValue* const placed = place(found);
    if (within_.empty() && found.is_object && depth_ < 2)
      ++depth_;
    else
      within_.push_back(placed);  // stays where it is: nothing is added beside it before it closes
    return true;
  }
  bool close() {
    if (within_.empty())
      --depth_;
    else
      within_.pop_back();
    return true;
  }

  const char* begin_ = nullptr;
  const char* read_ = nullptr;
  const char* counted_ = nullptr;  // up to here newlines are in line_
  std::size_t values_ = 0;
  Index line_ = 1;
  Index depth_ = 0;  // 1 in the outermost object, 2 in a section
  std::string section_;
  std::string name_;
  std::vector<FoundValue*> within_;  // arrays and deeper objects that are open; null where their content is skipped
  std::string member_;               // the last key in them
};

[[noreturn]] void throw_at(std::string_view name, std::string_view text, std::size_t offset, std::string_view what) {
  const std::string_view before = text.substr(0, offset);
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto column = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) + 1;
  throw ConfigError(fmt::format("{}:{}:{}: {}", name, std::count(before.begin(), before.end(), '\n') + 1, column,
                                shortened(std::string(what))));
}

/// Says what is wrong at `offset` in plain words; falls back to the parser's own.
std::string plain_message(std::string_view text, std::size_t offset, std::string_view parser_text) {
  if (offset >= text.size())
    return "the text ends too early; a value, or the end of an object, string or comment is missing";
  // Escaped, as the parser advises, it is refused too.
  if (parser_text.find("control character") != std::string_view::npos)
    return "a control character in a text; remove it, or close the text before it";
  const char c = text[offset];
  const auto last = text.substr(0, offset).find_last_not_of(" \t\r\n");
  const char previous = last == std::string_view::npos ? '\0' : text[last];
  if (c == '\'') return "strings and keys stand in double quotes, not in single quotes";
  if ((c == '}' || c == ']') && previous == ',')
    return fmt::format("a comma stands before the closing {}; remove it", c);
  const bool key_expected = parser_text.find("object key") != std::string_view::npos;
  if (key_expected && parser_text.find("invalid literal") != std::string_view::npos)
    return "a key must stand in double quotes";
  const bool value_before = previous != ',' && previous != ':' && previous != '{' && previous != '[';
  if (c == '"' && previous != '\0' && value_before && parser_text.find("unexpected string") != std::string_view::npos)
    return "a comma or a colon is missing before this";

  // "[id] parse error at line 1, column 2: syntax error while parsing X - DETAIL; last read: 'Y'; expected Z"
  std::string detail(parser_text);
  if (const auto id = detail.find("] "); id != std::string::npos) detail.erase(0, id + 2);
  if (const auto colon = detail.find(": "); colon != std::string::npos) detail.erase(0, colon + 2);
  if (const auto dash = detail.find(" - "); dash != std::string::npos) detail.erase(0, dash + 3);
  if (const auto read = detail.find("; last read: '"); read != std::string::npos) {
    const auto expected = detail.rfind("; expected ");
    detail.erase(read, expected != std::string::npos && expected > read ? expected - read : std::string::npos);
  }
  return "not JSON: " + detail;
}

}  // namespace

std::vector<ConfigEntry> read_config_entries(std::string_view text, std::string_view name) {
  if (text.size() > kMostConfigBytes) {
    throw ConfigError(fmt::format("{}: is longer than the {} bytes that a configuration may have; is it one?", name,
                                  kMostConfigBytes));
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  const auto zero = text.find('\0');
  if (zero != std::string_view::npos)  // the parser would stop there without a word
    throw_at(name, text, zero, "a zero byte; save the file as UTF-8");
  ValueReader reader;
  if (!reader.parse(text)) {
    if (!reader.limit.empty()) throw_at(name, text, reader.error_position, reader.limit + "; is it a configuration?");
    // A string or number in the wrong place is read whole, and begins before the error shows.
    const bool whole_token = reader.error_text.find("unexpected string literal") != std::string::npos ||
                             reader.error_text.find("unexpected number literal") != std::string::npos;
    const std::size_t back = whole_token ? reader.error_token.size() : 1;
    std::size_t offset = reader.error_position - std::min(back, reader.error_position);
    if (reader.error_position > text.size()) offset = text.size();
    throw_at(name, text, offset, plain_message(text, offset, reader.error_text));
  }
  if (!reader.root.is_object)
    throw ConfigError(fmt::format("{}: is {}; must be an object: {{ ... }}", name, shortened(reader.root.shown)));
  return std::move(reader.entries);
}

std::optional<FoundValue> read_json_value(std::string_view text) {
  ValueReader reader;
  if (text.size() > kMostConfigBytes || text.find('\0') != std::string_view::npos) return std::nullopt;
  if (!reader.parse(text)) {
    if (reader.error_text.find("number overflow") == std::string::npos) return std::nullopt;
    return FoundValue{{}, std::string(text) + " (out of range)"};
  }
  return std::move(reader.root);
}

std::string shortened(std::string text) {
  std::size_t most = 400;
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.replace(most, text.npos, "...");
}

std::optional<std::string> json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    return std::nullopt;
  }
}

}  // namespace weft

#include "weft/train/json_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "weft/core/c_locale.h"

namespace weft {
namespace {

/// Takes the parser's events; the first that does not belong to a list of texts ends the reading.
class TextListReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TextListReader(std::size_t most) : most_(most) {}

  std::vector<std::string> texts;

  bool start_array(std::size_t) override { return !std::exchange(open_, true); }
  bool end_array() override { return true; }
  bool string(std::string& text) override {
    if (!open_ || texts.size() == most_) return false;
    texts.push_back(std::move(text));
    return true;
  }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(std::int64_t) override { return false; }
  bool number_unsigned(std::uint64_t) override { return false; }
  bool number_float(double, const std::string&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return false; }
  bool key(std::string&) override { return false; }
  bool end_object() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::size_t most_;
  bool open_ = false;
};

}  // namespace

std::string json_number(double value) { return nlohmann::json(value).dump(); }

std::string json_strings(const std::vector<std::string>& texts) {
  std::string all = "[";
  for (const std::string& text : texts) {
    if (all.size() > 1) all += ',';
    all += nlohmann::json(text).dump();
  }
  return all += ']';
}

std::optional<std::vector<std::string>> read_json_strings(std::string_view json, std::size_t most) {
  const CLocale for_fractions;
  TextListReader reader(most);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) return std::nullopt;
  return std::move(reader.texts);
}

}  // namespace weft

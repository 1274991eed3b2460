#include "weft/train/json_text.h"

#include <nlohmann/json.hpp>

namespace weft {

std::string json_number(double value) { return nlohmann::json(value).dump(); }

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_strings(const std::vector<std::string>& texts) {
  std::string all = "[";
  for (const std::string& text : texts) {
    if (all.size() > 1) all += ',';
    all += nlohmann::json(text).dump();
  }
  return all += ']';
}

}  // namespace weft

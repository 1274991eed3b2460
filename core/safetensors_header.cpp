#include "weft/core/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "weft/core/error.h"

namespace weft {
namespace {

using nlohmann::json;

const std::string kMetadataKey = "__metadata__";

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view what) {
  throw CheckpointError(fmt::format(
      "{}: is not a safetensors file, or damaged: {}; copy it again or use another checkpoint", path.string(), what));
}

/// Bytes of one element, or nullopt for a type that we do not know and whose data we leave alone.
std::optional<Index> dtype_bytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL") return 1;
  return std::nullopt;
}

/// A header as JSON, and its tensor names in the order of the text.
struct Parsed {
  json object;
  std::vector<std::string> names;
};

Parsed parse_json(const std::filesystem::path& path, const std::string& text) {
  Parsed header;
  std::vector<std::set<std::string>> keys(3);  // those seen so far in the object open at each depth
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth > 2) refuse(path, "its header is nested too deeply");
      if (level + 1 < keys.size()) keys[level + 1].clear();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (level >= keys.size()) refuse(path, "its header is nested too deeply");
      if (!keys[level].insert(key).second) refuse(path, fmt::format("its header has {} twice", printable(key)));
      if (depth == 1 && key != kMetadataKey) header.names.push_back(key);
    }
    return true;
  };
  try {
    header.object = json::parse(text, watch);
  } catch (const json::parse_error& error) {
    refuse(path, fmt::format("its header is not JSON (byte {})", error.byte));
  } catch (const json::exception&) {
    refuse(path, "its header holds a number out of range");
  }
  return header;
}

/// An array of whole numbers from 0 to the largest Index, or nullopt.
std::optional<std::vector<Index>> whole_numbers(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<Index> numbers;
  for (const json& item : value) {
    if (!item.is_number_unsigned()) return std::nullopt;
    const auto number = item.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) return std::nullopt;
    numbers.push_back(static_cast<Index>(number));
  }
  return numbers;
}

SafetensorsEntry parse_entry(const std::filesystem::path& path, const std::string& name, const json& value) {
  const auto refuse_entry = [&](std::string_view what) {
    refuse(path, fmt::format("tensor {} {}", printable(name), what));
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    refuse_entry("is not described by dtype, shape and data_offsets");
  }
  if (!value["dtype"].is_string()) refuse_entry("has a dtype that is not a text");
  auto shape = whole_numbers(value["shape"]);
  if (!shape) refuse_entry("has a shape that is not a list of sizes");
  const auto offsets = whole_numbers(value["data_offsets"]);
  if (!offsets || offsets->size() != 2 || offsets->at(0) > offsets->at(1)) {
    refuse_entry("has data_offsets that are not a begin and an end");
  }
  SafetensorsEntry entry{name, value["dtype"], std::move(*shape), static_cast<std::uint64_t>(offsets->at(0)),
                         static_cast<std::uint64_t>(offsets->at(1))};
  const auto elements = checked_elements(entry.shape);
  if (!elements) refuse_entry("has a shape too large for any file");
  if (const auto size = dtype_bytes(entry.dtype)) {
    const auto bytes = checked_elements({*elements, *size});
    const bool fits = bytes && static_cast<std::uint64_t>(*bytes) == entry.end - entry.begin;
    if (!fits) refuse_entry("has a shape that does not fit its data_offsets");
  }
  return entry;
}

}  // namespace

Index SafetensorsEntry::elements() const {
  Index product = 1;
  for (const Index size : shape) product *= size;
  return product;
}

std::optional<Index> checked_elements(const std::vector<Index>& shape) {
  Index product = 1;
  for (const Index size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return product;
}

std::string printable(std::string_view text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

SafetensorsHeader parse_safetensors_header(const std::filesystem::path& path, const std::string& text) {
  const Parsed parsed = parse_json(path, text);
  if (!parsed.object.is_object()) refuse(path, "its header is not a JSON object");
  SafetensorsHeader header;
  if (const auto found = parsed.object.find(kMetadataKey); found != parsed.object.end()) {
    if (!found->is_object()) refuse(path, "its metadata are not an object");
    for (const auto& [key, value] : found->items()) {
      if (!value.is_string()) refuse(path, fmt::format("metadata {} is not a text", printable(key)));
      header.metadata[key] = value.get_ref<const std::string&>();
    }
  }
  for (const std::string& name : parsed.names) {
    header.entries.push_back(parse_entry(path, name, parsed.object[name]));
  }
  // Stable, so that empty tensors, which share a place, keep the order of the text.
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != end) {
      refuse(path, fmt::format("the data of tensor {} do not begin where those before end", printable(entry.name)));
    }
    end = entry.end;
  }
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  try {
    // Strings alone are left to the JSON library: to destroy one of its objects takes memory, and cannot fail.
    std::string text;
    for (const auto& [key, value] : header.metadata) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : ",", json(key).dump(), json(value).dump());
    }
    text = fmt::format(R"({{"{}":{{{}}})", kMetadataKey, text);
    for (const SafetensorsEntry& entry : header.entries) {
      text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json(entry.name).dump(),
                          entry.dtype, fmt::join(entry.shape, ","), entry.begin, entry.end);
    }
    text += "}";
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::type_error&) {
    throw CheckpointError("a tensor name or metadata text is not UTF-8 and cannot be saved; convert it to UTF-8");
  }
}

}  // namespace weft

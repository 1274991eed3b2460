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

constexpr std::size_t kMostSizes = 64;  // of a shape; no program writes as many

/// Takes the parser's events one by one, so that what is kept is a small multiple of the text, whatever it nests or
/// repeats: there is no tree of JSON values.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(const std::filesystem::path& path) : path_(path) {}

  SafetensorsHeader header;  // entries in the order of the text

  bool start_object(std::size_t) override {
    if (depth_ >= 2) refuse(path_, "its header is nested too deeply");
    if (++depth_ == 2 && !metadata_) {
      header.entries.push_back({name_, "", {}, 0, 0});
      fields_.clear();
      offsets_.clear();
    }
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2 && !metadata_) finish_entry();
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || metadata_) return other();
    if (in_array_) refuse(path_, "its header is nested too deeply");
    if (field_ == "dtype") refuse_entry("has a dtype that is not a text");
    in_array_ = true;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      metadata_ = text == kMetadataKey;
      if (!names_.insert(text).second) refuse_twice(text);
      name_ = std::move(text);
    } else if (metadata_) {
      const auto [place, is_new] = header.metadata.try_emplace(text);
      if (!is_new) refuse_twice(text);
      text_ = place;
    } else {
      if (text != "dtype" && text != "shape" && text != "data_offsets") refuse_description();
      if (std::count(fields_.begin(), fields_.end(), text) > 0) refuse_twice(text);
      fields_.push_back(text);
      field_ = std::move(text);
    }
    return true;
  }
  bool string(std::string& text) override {
    if (depth_ != 2 || in_array_) return other();
    if (metadata_) {
      text_->second = std::move(text);
    } else if (field_ == "dtype") {
      header.entries.back().dtype = std::move(text);
    } else {
      return other();
    }
    return true;
  }
  bool number_unsigned(std::uint64_t number) override {
    if (!in_array_ || number > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) return other();
    std::vector<Index>& numbers = field_ == "shape" ? header.entries.back().shape : offsets_;
    if (numbers.size() >= kMostSizes) refuse_entry(fmt::format("has {} with more than {} numbers", field_, kMostSizes));
    numbers.push_back(static_cast<Index>(number));
    return true;
  }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(std::int64_t) override { return other(); }
  bool number_float(double, const std::string&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) refuse(path_, "its header holds a number out of range");
    refuse(path_, fmt::format("its header is not JSON (byte {})", position));
  }

 private:
  /// Refuses a value where it cannot stand.
  [[noreturn]] bool other() const {
    if (depth_ == 0) refuse(path_, "its header is not a JSON object");
    if (metadata_) {
      refuse(path_, depth_ == 1 ? "its metadata are not an object"
                                : fmt::format("metadata {} is not a text", printable(text_->first)));
    }
    if (depth_ == 1) refuse_description();
    if (field_ == "dtype") refuse_entry("has a dtype that is not a text");
    if (field_ == "shape") refuse_entry("has a shape that is not a list of sizes");
    refuse_entry("has data_offsets that are not a begin and an end");
  }
  [[noreturn]] void refuse_description() const { refuse_entry("is not described by dtype, shape and data_offsets"); }
  [[noreturn]] void refuse_entry(std::string_view what) const {
    refuse(path_, fmt::format("tensor {} {}", printable(name_), what));
  }
  [[noreturn]] void refuse_twice(const std::string& text) const {
    refuse(path_, fmt::format("its header has {} twice", printable(text)));
  }

  void finish_entry() {
    SafetensorsEntry& entry = header.entries.back();
    if (fields_.size() != 3) refuse_description();
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) {
      refuse_entry("has data_offsets that are not a begin and an end");
    }
    entry.begin = static_cast<std::uint64_t>(offsets_[0]);
    entry.end = static_cast<std::uint64_t>(offsets_[1]);
    const auto elements = checked_elements(entry.shape);
    if (!elements) refuse_entry("has a shape too large for any file");
    if (const auto size = dtype_bytes(entry.dtype)) {
      const auto bytes = checked_elements({*elements, *size});
      const bool fits = bytes && static_cast<std::uint64_t>(*bytes) == entry.end - entry.begin;
      if (!fits) refuse_entry("has a shape that does not fit its data_offsets");
    }
  }

  const std::filesystem::path& path_;
  int depth_ = 0;          // objects that are open
  bool in_array_ = false;  // of a tensor's shape or data_offsets
  bool metadata_ = false;  // the key read last at depth 1 is that of the metadata
  std::string name_, field_;
  std::set<std::string> names_;
  SafetensorsMetadata::iterator text_;
  std::vector<std::string> fields_;  // of the tensor, as far as it was read
  std::vector<Index> offsets_;
};

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
  HeaderReader reader(path);
  json::sax_parse(text, &reader);
  SafetensorsHeader header = std::move(reader.header);
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

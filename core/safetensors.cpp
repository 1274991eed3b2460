#include "weft/core/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <type_traits>

#include "weft/core/error.h"

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and so are our copies");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::size_t kChunkBytes = 1 << 20;
const std::string kChecksumKey = "weft.crc32";
const std::string kNoChecksum = "00000000";

/// "1,234,567", whatever the locale.
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

/// Where the eight digits of the checksum stand in a header, or nullopt. The quotes in the searched text
/// cannot occur unescaped inside a JSON string, so a value never passes for the key.
std::optional<std::size_t> checksum_position(std::string_view header) {
  const std::string key = fmt::format(R"("{}":")", kChecksumKey);
  const std::size_t found = header.find(key);
  if (found == header.npos) return std::nullopt;
  const std::size_t digits = found + key.size();
  const bool eight = header.find('"', digits) == digits + kNoChecksum.size();
  return eight ? std::optional(digits) : std::nullopt;
}

/// CRC-32 of bytes that come in pieces.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;  // a null pointer would start the sum over
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  std::string digits() const { return fmt::format("{:08x}", crc_); }

 private:
  uLong crc_ = crc32_z(0, nullptr, 0);
};

std::array<std::byte, kLengthBytes> length_bytes(std::uint64_t length) {
  return std::bit_cast<std::array<std::byte, kLengthBytes>>(length);
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

constexpr std::string_view kMendDamage = "copy it again or use another checkpoint";

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view what, std::string_view mend) {
  throw CheckpointError(fmt::format("{}: {}; {}", path.string(), what, mend));
}

[[noreturn]] void refuse_cut(const std::filesystem::path& path, std::uint64_t size, std::uint64_t expected) {
  refuse(path, fmt::format("is cut: {} bytes of {}", grouped(size), grouped(expected)), kMendDamage);
}

}  // namespace

void SafetensorsWriter::add(std::string name, std::vector<Index> shape, std::span<const float> values) {
  add_item({std::move(name), std::move(shape), values});
}

void SafetensorsWriter::add(std::string name, std::vector<Index> shape, std::span<const double> values) {
  add_item({std::move(name), std::move(shape), values});
}

void SafetensorsWriter::add_item(Item item) {
  const auto given = std::visit([](const auto& values) { return values.size(); }, item.values);
  const auto elements = checked_elements(item.shape);
  if (!elements || static_cast<std::size_t>(*elements) != given) {
    throw ShapeError(fmt::format("tensor {} of shape [{}] cannot be saved from {} values", printable(item.name),
                                 fmt::join(item.shape, ", "), given));
  }
  if (item.name == "__metadata__" || !names_.insert(item.name).second) {
    throw CheckpointError(fmt::format("tensor name {} is taken; give each tensor its own", printable(item.name)));
  }
  items_.push_back(std::move(item));
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  SafetensorsHeader header{metadata_, {}};
  header.metadata[kChecksumKey] = kNoChecksum;
  std::vector<std::span<const std::byte>> data;
  std::uint64_t offset = 0;
  const auto place = [&](const Item& item, const char* dtype) {
    data.push_back(std::visit([](const auto& values) { return std::as_bytes(values); }, item.values));
    header.entries.push_back({item.name, dtype, item.shape, offset, offset + data.back().size()});
    offset += data.back().size();
  };
  for (const Item& item : items_) {
    if (std::holds_alternative<std::span<const double>>(item.values)) place(item, "F64");
  }
  for (const Item& item : items_) {
    if (std::holds_alternative<std::span<const float>>(item.values)) place(item, "F32");
  }
  std::string text = format_safetensors_header(header);
  if (text.size() > kMostHeaderBytes) {
    refuse(path, fmt::format("cannot be written: a header of {} bytes", grouped(text.size())),
           fmt::format("the format allows {}; shorten the metadata", grouped(kMostHeaderBytes)));
  }
  const auto length = length_bytes(text.size());
  Checksum checksum;
  checksum.add(length);
  checksum.add(bytes_of(text));
  for (const auto& bytes : data) checksum.add(bytes);
  text.replace(checksum_position(text).value(), kNoChecksum.size(), checksum.digits());

  write_file_atomically(path, [&](FileWriter& writer) {
    writer.write(length);
    writer.write(text);
    for (const auto& bytes : data) writer.write(bytes);
  });
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path, const SafetensorsOptions& options) {
  try {
    SafetensorsFile file{InputFile(path)};
    file.parse(options);
    return file;
  } catch (const DataError& error) {
    throw UnreadableError(error.what());
  }
}

void SafetensorsFile::parse(const SafetensorsOptions& options) {
  const std::uint64_t size = file_.size();
  if (size < kLengthBytes + 2) {
    refuse(path(), fmt::format("is not a safetensors file, or cut: {} bytes", size), kMendDamage);
  }
  std::array<std::byte, kLengthBytes> length;
  file_.read_at(0, length);
  const auto header_bytes = std::bit_cast<std::uint64_t>(length);
  std::byte first;
  file_.read_at(kLengthBytes, std::span(&first, 1));
  if (header_bytes > kMostHeaderBytes || first != std::byte{'{'}) {
    refuse(path(), "is not a safetensors file: it does not begin as one", "name a file ending in .safetensors");
  }
  if (header_bytes > size - kLengthBytes) refuse_cut(path(), size, kLengthBytes + header_bytes);
  std::string text(static_cast<std::size_t>(header_bytes), ' ');
  file_.read_at(kLengthBytes, std::as_writable_bytes(std::span(text)));
  data_begin_ = kLengthBytes + header_bytes;

  SafetensorsHeader header = parse_safetensors_header(path(), text);
  metadata_ = std::move(header.metadata);
  entries_ = std::move(header.entries);
  for (std::size_t i = 0; i < entries_.size(); ++i) by_name_[entries_[i].name] = i;
  const std::uint64_t data_bytes = entries_.empty() ? 0 : entries_.back().end;
  if (data_bytes > size - data_begin_) refuse_cut(path(), size, data_begin_ + data_bytes);
  if (data_bytes < size - data_begin_) {
    refuse(path(),
           fmt::format("is damaged: {} bytes where {} are expected", grouped(size), grouped(data_begin_ + data_bytes)),
           kMendDamage);
  }
  check_sum(length, std::move(text), options);
}

void SafetensorsFile::check_sum(std::span<const std::byte> length, std::string header,
                                const SafetensorsOptions& options) {
  const auto stored = metadata_.find(kChecksumKey);
  if (stored == metadata_.end()) {
    if (options.require_checksum) {
      refuse(path(), fmt::format("is damaged or not from Weft (no {} in its metadata)", kChecksumKey), kMendDamage);
    }
    return;
  }
  const auto position = checksum_position(header);
  if (!position) refuse(path(), fmt::format("is damaged ({} is not 8 digits)", kChecksumKey), kMendDamage);
  header.replace(*position, kNoChecksum.size(), kNoChecksum);
  Checksum checksum;
  checksum.add(length);
  checksum.add(bytes_of(header));
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, file_.size())));
  for (std::uint64_t offset = data_begin_; offset < file_.size(); offset += chunk.size()) {
    const auto count = std::min<std::uint64_t>(chunk.size(), file_.size() - offset);
    const auto part = std::span(chunk).first(static_cast<std::size_t>(count));
    file_.read_at(offset, part);
    checksum.add(part);
  }
  if (checksum.digits() != stored->second) {
    refuse(path(), fmt::format("is damaged (checksum {}, expected {})", checksum.digits(), printable(stored->second)),
           kMendDamage);
  }
  metadata_.erase(stored);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

const SafetensorsEntry& SafetensorsFile::entry(std::string_view name) const {
  const SafetensorsEntry* found = find(name);
  if (found == nullptr) {
    refuse(path(), fmt::format("has no tensor {}", printable(name)), "use a file of this model");
  }
  return *found;
}

template <class T>
void SafetensorsFile::read_as(std::string_view name, std::span<T> values) const {
  const SafetensorsEntry& tensor = entry(name);
  if (tensor.dtype != "F32" && tensor.dtype != "F64") {
    refuse(path(), fmt::format("tensor {} is of type {}", printable(name), printable(tensor.dtype)),
           "convert it to F32 or F64");
  }
  if (static_cast<std::size_t>(tensor.elements()) != values.size()) {
    refuse(path(),
           fmt::format("tensor {} has shape [{}], but {} values are wanted", printable(name),
                       fmt::join(tensor.shape, ", "), values.size()),
           "use a file of this model");
  }
  using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
  std::uint64_t offset = data_begin_ + tensor.begin;
  try {
    if (tensor.dtype == (std::is_same_v<T, float> ? "F32" : "F64")) {
      file_.read_at(offset, std::as_writable_bytes(values));
      return;
    }
    std::vector<Other> chunk(std::min(values.size(), kChunkBytes / sizeof(Other)));
    while (!values.empty()) {
      const auto part = std::span(chunk).first(std::min(values.size(), chunk.size()));
      file_.read_at(offset, std::as_writable_bytes(part));
      std::transform(part.begin(), part.end(), values.begin(), [](Other value) { return static_cast<T>(value); });
      offset += part.size_bytes();
      values = values.subspan(part.size());
    }
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

void SafetensorsFile::read(std::string_view name, std::span<float> values) const { read_as(name, values); }

void SafetensorsFile::read(std::string_view name, std::span<double> values) const { read_as(name, values); }

}  // namespace weft

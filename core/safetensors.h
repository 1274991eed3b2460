// Named tensors in one file, in the safetensors format (https://github.com/huggingface/safetensors,
// "Format"): a 64-bit little-endian length, a JSON header of that length, then the raw data. Whatever a file
// holds, reading it ends in its tensors or in a CheckpointError, with no allocation beyond a small multiple
// of the file's own size.
//
// Files written here carry a CRC-32 (zlib's) of the whole file in the metadata key "weft.crc32", eight
// lower-case hex digits, computed with '0' in the place of each of the eight. It finds accidents, not malice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/core/file.h"
#include "weft/core/safetensors_header.h"
#include "weft/core/types.h"

namespace weft {

/// The limit of the format's reference implementation for a header, in bytes.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

/// Collects views of tensors and writes them; the same contents in the same order always give the same bytes.
class SafetensorsWriter {
 public:
  /// Adds a tensor, stored as F32 or F64 by its type. The values are read in write(), so they must stay until
  /// then. Throws ShapeError if they do not fill the shape, CheckpointError if the name is taken.
  void add(std::string name, std::vector<Index> shape, std::span<const float> values);
  void add(std::string name, std::vector<Index> shape, std::span<const double> values);

  /// Sets one metadata text. Key and value must be UTF-8; the key "weft.crc32" is the writer's own.
  void set_metadata(std::string key, std::string value) { metadata_[std::move(key)] = std::move(value); }

  /// Replaces the file atomically (see write_file_atomically). Tensors come in the order they were added, but
  /// all F64 before all F32, so that each is aligned. Throws Error if the file cannot be written,
  /// CheckpointError if a text is not UTF-8.
  void write(const std::filesystem::path& path) const;

 private:
  struct Item {
    std::string name;
    std::vector<Index> shape;
    std::variant<std::span<const double>, std::span<const float>> values;
  };
  void add_item(Item item);

  std::vector<Item> items_;
  std::set<std::string> names_;
  SafetensorsMetadata metadata_;
};

/// How a file is opened.
struct SafetensorsOptions {
  /// Refuse files without "weft.crc32". Otherwise such files (of other programs) are read unchecked.
  bool require_checksum = false;
};

/// A safetensors file open for reading; tensors are read from disk one by one, when asked for.
class SafetensorsFile {
 public:
  /// Reads and checks the header, then the checksum if there is one. Throws CheckpointError if the file
  /// cannot be read, is not a whole safetensors file, or does not match its checksum.
  static SafetensorsFile open(const std::filesystem::path& path, const SafetensorsOptions& options = {});

  const std::filesystem::path& path() const { return file_.path(); }

  /// The metadata texts without the checksum.
  const SafetensorsMetadata& metadata() const { return metadata_; }

  /// All tensors in the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// The tensor of that name, or nullptr.
  const SafetensorsEntry* find(std::string_view name) const;

  /// The shape of a tensor. Throws CheckpointError if there is no such tensor.
  const std::vector<Index>& shape(std::string_view name) const { return entry(name).shape; }

  /// Reads an F32 or F64 tensor, converting between the two if need be. Throws CheckpointError if there is no
  /// such tensor, it is of another type, has not values.size() elements, or cannot be read.
  void read(std::string_view name, std::span<float> values) const;
  void read(std::string_view name, std::span<double> values) const;

 private:
  explicit SafetensorsFile(InputFile file) : file_(std::move(file)) {}
  void parse(const SafetensorsOptions& options);
  void check_sum(std::span<const std::byte> length, std::string header, const SafetensorsOptions& options);
  const SafetensorsEntry& entry(std::string_view name) const;
  template <class T>
  void read_as(std::string_view name, std::span<T> values) const;

  InputFile file_;
  std::uint64_t data_begin_ = 0;
  SafetensorsMetadata metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace weft

// The JSON header of a safetensors file as text and as a structure. Whatever the text, parsing ends in a
// header whose tensors fill the data without gaps or overlaps, or in a CheckpointError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// Texts that travel with the tensors.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// One tensor of a file as its header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< "F32", "F64", "I64", … as the format spells them
  std::vector<Index> shape;
  std::uint64_t begin = 0;  ///< first byte of its data, counted from the end of the header
  std::uint64_t end = 0;    ///< one past its last byte

  /// Product of the shape; 1 for a scalar.
  Index elements() const;
};

/// All that a header says.
struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> entries;  ///< in the order of their data
};

/// Reads the header of the file `path`, which stands in errors only. Throws CheckpointError if the text is
/// not JSON of the right form, has a name twice, or places data at odds with the shapes or with gaps.
SafetensorsHeader parse_safetensors_header(const std::filesystem::path& path, const std::string& text);

/// Writes a header as text, padded with blanks so that the data after it begin at a multiple of 8 bytes. The
/// same header gives the same text. Throws CheckpointError if a name or a text is not UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// Product of the sizes in a shape, or nothing if it is beyond Index or a size is negative.
std::optional<Index> checked_elements(const std::vector<Index>& shape);

/// A name or text as a JSON string, fit for an error message whatever bytes it holds.
std::string printable(std::string_view text);

}  // namespace weft

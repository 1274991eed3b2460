// Any bytes as a safetensors file: all tensors of it are read, whether or not the checksum is right.
#include <cstring>

#include "targets.h"
#include "weft/core/error.h"
#include "weft/core/safetensors.h"

namespace weft {
namespace {

void read_all(const SafetensorsFile& file, std::size_t file_bytes) {
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.dtype != "F32" && entry.dtype != "F64") continue;
    const auto elements = static_cast<std::size_t>(entry.elements());
    fuzz_require(elements <= file_bytes, "no tensor has more elements than its file has bytes");
    std::vector<float> narrow(elements);
    std::vector<double> wide(elements);
    file.read(entry.name, std::span(narrow));
    file.read(entry.name, std::span(wide));
  }
}

void run(const std::string& bytes) {
  std::string mended = bytes;
  mend_checksum(mended);
  for (const std::string& tried : {bytes, mended}) {
    try {
      const MemoryFile file(tried);
      read_all(SafetensorsFile::open(file.path()), tried.size());
    } catch (const CheckpointError&) {
    }
    if (mended == bytes) return;
  }
}

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::vector<std::string> seeds() {
  std::vector<std::string> files{
      "",
      file_of("{}", ""),
      file_of(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"),
      file_of(R"({"__metadata__":{"a":"b","weft.crc32":"00000000"},"d":{"dtype":"F64","shape":[1,2],"data_offsets":)"
              R"([0,16]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]},"s":{"dtype":"F32","shape":[],)"
              R"("data_offsets":[16,20]}})",
              std::string(20, 'x')),
      file_of(R"({"a":{"dtype":"BF16","shape":[1,1,1],"data_offsets":[0,2]},"b":{"dtype":"F8_E4M3","shape":[9],)"
              R"("data_offsets":[2,3]}})",
              "abc"),
      file_of(R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,9223372036854775807]}})", "x")};
  mend_checksum(files[3]);
  return files;
}

}  // namespace

FuzzTarget fuzz_safetensors() { return {"safetensors", 4096, run, seeds}; }

}  // namespace weft

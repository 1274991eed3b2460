#include "targets.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

namespace weft {

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets{fuzz_safetensors(), fuzz_checkpoint(), fuzz_config(), fuzz_text(),
                                               fuzz_tokenizer(),   fuzz_subword(),    fuzz_metric(), fuzz_cache()};
  return targets;
}

std::vector<std::string> fuzz_parts(const std::string& bytes) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= bytes.size();) {
    const std::size_t end = std::min(bytes.find(kFuzzPart, begin), bytes.size());
    parts.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

MemoryFile::MemoryFile(std::string_view bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  fuzz_require(file_ >= 0, "a file in memory can be made");
  path_ = fmt::format("/proc/self/fd/{}", file_);
  const bool written = ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (!written) ::close(file_);
  fuzz_require(written, "a file in memory can be written");
}

MemoryFile::~MemoryFile() { ::close(file_); }

void mend_checksum(std::string& bytes) {
  const std::string key = R"("weft.crc32":")";
  const std::size_t found = bytes.find(key);
  if (found == bytes.npos || bytes.size() - found < key.size() + 8) return;
  const std::size_t digits = found + key.size();
  bytes.replace(digits, 8, "00000000");
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  bytes.replace(digits, 8, fmt::format("{:08x}", sum));
}

}  // namespace weft

// What is fuzzed. A target reads bytes that nobody vouches for as the program would. It catches the errors that are the
// right answer to them; anything else, and a broken promise, ends it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A reader of untrusted bytes.
struct FuzzTarget {
  const char* name;
  std::size_t most_bytes;  ///< of an input
  void (*run)(const std::string& bytes);
  std::vector<std::string> (*seeds)();  ///< small inputs of all kinds that it reads, made anew by each call
};

/// All targets; each is the function of its name in a file of its own.
const std::vector<FuzzTarget>& fuzz_targets();

FuzzTarget fuzz_safetensors();
FuzzTarget fuzz_checkpoint();
FuzzTarget fuzz_config();
FuzzTarget fuzz_text();
FuzzTarget fuzz_tokenizer();
FuzzTarget fuzz_subword();
FuzzTarget fuzz_metric();
FuzzTarget fuzz_cache();

/// Stands between the parts of an input that has several: a byte that neither JSON nor text needs.
inline constexpr char kFuzzPart = '\x1F';

/// The parts of an input; at least one.
std::vector<std::string> fuzz_parts(const std::string& bytes);

/// Ends a target where the library breaks a promise.
inline void fuzz_require(bool kept, const char* promise) {
  if (!kept) throw std::logic_error(promise);
}

/// A regular file that is on no disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_;
};

/// Writes the right checksum into the bytes of a safetensors file that has a place for it, so that what is behind the check
/// is reached.
void mend_checksum(std::string& bytes);

}  // namespace weft

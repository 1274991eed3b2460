// A folder of its own for a test, and small files in it as strings.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace weft {

/// All bytes of a file; none if it cannot be read.
inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Makes a file of these bytes, without the care of write_file.
inline void put(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);  // ext4 waits for the disk where a file is truncated and written anew
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  REQUIRE(file.flush().good());
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A new folder, removed with all that is in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft_test_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  /// Puts a file into the folder; returns its path.
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    put(path_ / name, bytes);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace weft

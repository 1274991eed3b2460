// Whole files, read and written so that a failure or a kill at any moment leaves either the old file or the
// new one, complete. Every error names the file, the cause and the mend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "weft/core/function_ref.h"

namespace weft {

/// Returns all bytes of a file, a pipe or a device. Throws DataError if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// A regular file open for reading anywhere. It stays the same file if another is renamed over its path
/// meanwhile.
class InputFile {
 public:
  /// Opens the file. Throws DataError if it cannot be opened or is not a regular file.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }

  /// Its length in bytes when it was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `to` with the bytes from `offset` on. Throws DataError if there are not so many.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::filesystem::path path_;
  int file_;
  std::uint64_t size_;
};

/// Takes the bytes of a file that write_file_atomically makes.
class FileWriter {
 public:
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Adds bytes at the end. Throws Error if they cannot be written.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

 private:
  friend void write_file_atomically(const std::filesystem::path&, FunctionRef<void(FileWriter&)>);
  FileWriter(const std::filesystem::path& path, int file) : path_(path), file_(file) {}
  void flush();

  const std::filesystem::path& path_;
  int file_;
  std::string buffer_;
};

/// Replaces the file `path`, or creates it, with what `write` gives to the FileWriter. The bytes go to a
/// temporary file "<name>.<process id>.tmp" beside it, reach the disk, and are then renamed to `path`, so that
/// the path always holds the old file or the whole new one. Throws Error if that fails (a full disk, a missing
/// folder), and lets through what `write` throws; either way the temporary is removed and the old file is as
/// it was. (The last step alone, telling the disk of the rename, fails with the new file in place.) A
/// symbolic link is followed; a device or a folder is refused. The temporary is locked as long as it is written.
/// Two threads of one process must not write the same path at the same time.
void write_file_atomically(const std::filesystem::path& path, FunctionRef<void(FileWriter&)> write);

/// Throws Error if write_file_atomically could not begin with this path; makes its temporary and removes that again.
void require_can_write(const std::filesystem::path& path);

/// Does the same as write_file_atomically for bytes that are at hand.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// A file that grows at its end. What write() took is in the file when it returns, so a kill or a full disk cuts short
/// no more than what is being written.
class AppendedFile {
 public:
  /// Opens the file and makes it if it is missing. Throws Error if that fails.
  explicit AppendedFile(const std::filesystem::path& path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  /// Adds text at the end. Throws Error if not all of it can be written.
  void write(std::string_view text);

 private:
  std::filesystem::path path_;
  int file_;
};

/// Removes the temporaries that processes killed while writing `path` left beside it, or beside the file that it is a link
/// to. To be called only where no other process writes that path. Throws Error if the path cannot be followed.
void remove_leftovers(const std::filesystem::path& path);

}  // namespace weft

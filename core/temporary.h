// The files that write_file_atomically fills before it renames them: removed when it fails, when a signal ends the process,
// and, if the process was killed, by the next one that looks for them.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string_view>

#include "weft/core/function_ref.h"

namespace weft {

/// A file that is locked as long as it is written and removed at the end, unless rename_to() gave it its own name. Takes no
/// memory, which could fail after the file was made.
class Temporary {
 public:
  /// Makes the file. One of that name that a killed process left is removed first, and not written to: copies by hard
  /// links may share it. `path` must outlive this object.
  explicit Temporary(const std::filesystem::path& path);
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary();

  /// The descriptor to write to, which the caller closes; negative, with errno, if the file cannot be made.
  int file() const { return file_; }

  /// Renames the file; from then on its old name is left alone, which a process of the same number elsewhere may use. False,
  /// with errno, if that fails.
  bool rename_to(const std::filesystem::path& target);

 private:
  const std::filesystem::path& path_;
  std::atomic<const char*>* place_ = nullptr;
  int file_ = -1;
  bool renamed_ = false;
  int lock_ = -1;  // a second descriptor, so that the lock outlasts the first one's end
};

/// The name of the file whose temporary has this name, as write_file_atomically makes it; nothing for other names.
std::optional<std::string_view> file_of_temporary(std::string_view name);

/// Removes the temporaries of this process, the first sixteen if there are more. For the handler of a signal that ends it:
/// calls only what may be called there.
void remove_temporaries() noexcept;

/// Removes the temporaries in a folder that no process, here or on another machine, is writing: killed ones left them. Only
/// those of files whose names `wanted` says yes to; none on a file system without locks. Throws Error if the folder cannot
/// be read.
void remove_dead_temporaries(const std::filesystem::path& folder, FunctionRef<bool(std::string_view name)> wanted);

}  // namespace weft

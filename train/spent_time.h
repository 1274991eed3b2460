// The seconds that a run with a budget of time has taken, in a small file of its folder. Each session makes a new one, so
// that a copy of the folder by hard links has its own, and writes over that in place.
// Checkpoints cannot have them, whose bytes are the same however often a run was stopped, nor can the lines of the log.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>

namespace weft {

/// The name of that file in the run folder.
inline constexpr const char* kSpentFile = "spent_seconds.txt";

/// The seconds that such a file has; 0 if it is not there or is no such file. Throws Error if it cannot be read.
double read_spent_seconds(const std::filesystem::path& path);

/// Writes such a file again and again. What write() took is in the file when it returns, also if the process is killed.
class SpentTime {
 public:
  /// Replaces the file, or makes it, at once with `seconds` in it. Throws Error if that fails.
  SpentTime(std::filesystem::path path, double seconds);
  SpentTime(const SpentTime&) = delete;
  SpentTime& operator=(const SpentTime&) = delete;
  ~SpentTime();

  /// Throws Error if it cannot be written.
  void write(double seconds) const;

 private:
  std::filesystem::path path_;
  int file_;
};

/// What the next of a kind, update or validation, may take: as long as the second longest of the last few. One for which
/// the machine stood still thus counts for nothing.
class ExpectedTime {
 public:
  /// Takes in what one took.
  void take(double seconds);
  /// That of the first, as long as there is no second; 0 before it.
  double seconds() const;

 private:
  std::array<double, 16> last_{};
  std::size_t taken_ = 0;
};

}  // namespace weft

#include "weft/train/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/file_calls.h"
#include "weft/core/folder.h"
#include "weft/data/file_hash.h"
#include "weft/data/open_input.h"
#include "weft/data/toy.h"
#include "weft/train/checkpoint.h"
#include "weft/train/commands.h"
#include "weft/train/spent_time.h"
#include "weft/train/task_text.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(fmt::format("{}: cannot be written ({})", path, std::strerror(error)));
}

/// The number that a text is.
std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

/// The descriptor that a path stands for: /dev/stdout, /dev/stderr, /dev/fd/N, and what leads to one in /proc. Opening the
/// path instead would begin at the start of a file that the shell appends to, or replace it.
std::optional<int> descriptor_of(fs::path path) {
  constexpr int kMostLinks = 40;
  for (int i = 0; i < kMostLinks; ++i) {
    if (path == "/dev/stdout") return STDOUT_FILENO;  // also where there is no /proc
    if (path == "/dev/stderr") return STDERR_FILENO;
    const fs::path folder = path.parent_path();
    std::error_code error;
    for (const char* own : {"/proc/self/fd", "/proc/thread-self/fd"}) {
      if (folder == "/dev/fd" || fs::equivalent(folder, own, error)) return number_in(path.filename().native());
    }
    if (!fs::is_symlink(path, error)) break;
    path = folder / fs::read_symlink(path, error);
  }
  return std::nullopt;
}

bool is_written_at_once(const std::string& path) {
  std::error_code error;
  return fs::is_other(path, error);
}

/// Opens a pipe or a device to write to. A pipe is waited for until it has a reader, as long as open_input waits for a writer.
int open_direct(const std::string& path) {
  constexpr std::chrono::milliseconds kPause(10);
  for (std::chrono::milliseconds waited(0);; waited += kPause) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0) {
      ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
      return file;
    }
    const int problem = errno;
    if (problem == EINTR) continue;
    std::error_code error;
    if (problem != ENXIO || !fs::is_fifo(path, error)) fail(path, problem);
    if (waited >= kPipeWait) {
      throw ConfigError(fmt::format("{}: is a pipe that nobody reads; start its reader first, or name a file", path));
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// A descriptor that takes text at once.
class Direct {
 public:
  explicit Direct(const std::string& path) : path_(path) {
    const std::optional<int> number = descriptor_of(path);
    file_ = number ? ::dup(*number) : open_direct(path);
    if (file_ < 0) fail(path, errno);
  }
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;
  ~Direct() {
    if (file_ >= 0) ::close(file_);
  }

  void put(const std::string& text) const {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = uninterrupted([&] { return ::write(file_, text.data() + at, text.size() - at); });
      if (count <= 0) fail(path_, count < 0 ? errno : ENOSPC);
      at += static_cast<std::size_t>(count);
    }
  }

  void close() {
    if (::close(std::exchange(file_, -1)) != 0) fail(path_, errno);
  }

 private:
  const std::string& path_;
  int file_;
};

/// A path as it is without links; what it leads to need not be there.
fs::path place_of(const fs::path& path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(end_of_links(path), ignored);
  return fs::weakly_canonical(whole.parent_path(), ignored) / whole.filename();
}

bool belongs_to_run(const fs::path& path) { return path.extension() == ".safetensors" || is_file_of_run(path); }

/// What is wrong with an open file that text goes to, if it is one of the inputs, which would be read again or spoilt, or a
/// run's own; else nothing.
std::string problem_of(int file, const std::string& name, const std::vector<std::string>& inputs) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return "";
  for (const std::string& input : inputs) {
    if (!is_at(file, input)) continue;
    return fmt::format("{}: goes to the file that is read from {}; name another file", name, input);
  }
  std::error_code error;
  const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", file), error);
  if (error || !belongs_to_run(path)) return "";
  return fmt::format("{}: goes to a run's own file, {}; name another file", name, show_controls(path.native()));
}

/// Throws unless a regular file can be written at a path, by what it takes to begin: what is found out late costs the work.
void require_writable(const std::string& option, const std::string& path) {
  if (belongs_to_run(path) || belongs_to_run(place_of(path))) {
    throw ConfigError(fmt::format("--{} {}: is the name of a run's own file; name another file", option, path));
  }
  require_not_protected(path, fmt::format("--{} {}", option, path));
}

/// Whether a file is there and has the name and the bytes of a text that the run of a checkpoint has read: from another
/// folder the names of a configuration lead elsewhere. A copy under another name, as a perfect translation is, is none.
bool is_text_of(const std::string& checkpoint, const fs::path& path, const std::vector<std::string>& inputs) {
  struct stat status {};
  const auto has_its_name = [&](const std::string& input) { return fs::path(input).filename() == path.filename(); };
  if (checkpoint.empty() || std::none_of(inputs.begin(), inputs.end(), has_its_name) ||
      ::stat(path.c_str(), &status) != 0 || status.st_size == 0) {
    return false;
  }
  const std::vector<std::uint64_t> hashes = load_state(checkpoint).file_hashes;
  const std::uint64_t hash = std::max<std::uint64_t>(1, file_hash(path));  // as run_file_hashes() has it
  return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

}  // namespace

void write_output(const std::string& path, FunctionRef<void(PutText)> write) {
  if (path.empty()) {
    write([](const std::string& text) { print(text); });
  } else if (descriptor_of(path) || is_written_at_once(path)) {
    Direct direct(path);
    write([&](const std::string& text) { direct.put(text); });
    direct.close();
  } else {
    write_file_atomically(path, [&](FileWriter& writer) {
      write([&](const std::string& text) { writer.write(std::string_view(text)); });
    });
  }
}

void require_not_printed_to(const std::vector<std::string>& inputs) {
  const std::string printed = problem_of(STDOUT_FILENO, "standard output", inputs),
                    warned = problem_of(STDERR_FILENO, "standard error", inputs);
  if (!warned.empty()) {  // this message must not go there either
    const int other = printed.empty() ? STDOUT_FILENO : ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (::dup2(other, STDERR_FILENO) < 0) ::close(STDERR_FILENO);
  }
  if (!printed.empty() || !warned.empty()) throw ConfigError(printed.empty() ? warned : printed);
}

bool is_file_of_run(const fs::path& path) {
  std::error_code error;
  const fs::path name = path.filename(), folder = fs::weakly_canonical(fs::absolute(path, error).parent_path(), error);
  if (name == "log.jsonl" || name == "config.json" || name == kSpentFile) {
    return fs::exists(folder / "last.safetensors", error);
  }
  const bool text = folder.filename() == kTaskFolder && is_name_of_toy_text(name.string());
  const fs::path run = folder.parent_path();
  return text && fs::exists(path, error) &&
         (fs::exists(run / "last.safetensors", error) || fs::exists(run / "log.jsonl", error));
}

void require_not_protected(const fs::path& path, const std::string& shown) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT && errno != ENOTDIR) {
    throw Error(fmt::format("{}: cannot be looked at: {}; check the path, the disk and the right to read it", shown,
                            std::strerror(errno)));
  }
  constexpr mode_t kWritable = 0222;
  if (exists && ((status.st_mode & kWritable) == 0 || ::access(path.c_str(), W_OK) != 0)) {
    throw ConfigError(fmt::format(
        "{}: is protected from being written (its mode); name another file, or allow it with chmod", shown));
  }
  require_can_write(path);
}

bool is_same_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return fs::equivalent(one, other, error) || place_of(one) == place_of(other);
}

void require_outputs(const Arguments& arguments, std::initializer_list<const char*> options,
                     const std::vector<std::string>& inputs, const std::string& checkpoint) {
  require_not_printed_to(inputs);
  std::vector<std::pair<std::string, std::string>> seen;  // options and their files
  std::vector<std::pair<std::string, int>> streams{{"standard output", STDOUT_FILENO},
                                                   {"standard error", STDERR_FILENO}};
  for (const char* option : options) {
    if (!arguments.has(option)) continue;
    const std::string path = arguments.text(option);
    std::error_code error;
    if (fs::is_directory(path, error)) {
      throw ConfigError(fmt::format("--{} {}: is a folder; name a file in it", option, path));
    }
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty() && !fs::is_directory(folder, error)) {
      const std::string lost = lost_link(folder);
      if (!lost.empty()) throw ConfigError(fmt::format("--{} {}: {} {}", option, path, folder.string(), lost));
      throw ConfigError(fmt::format("--{} {}: there is no folder {}; make it first", option, path, folder.string()));
    }
    if (const std::optional<int> file = descriptor_of(path)) {
      const int flags = ::fcntl(*file, F_GETFL);
      // What is at the place of a standard input that was closed can be written, and is lost.
      if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || *file == STDIN_FILENO) fail(path, EBADF);
      streams.emplace_back(fmt::format("--{} {}", option, path), *file);
      const std::string problem = problem_of(*file, streams.back().first, inputs);
      if (!problem.empty()) throw ConfigError(problem);
      continue;
    }
    if (is_written_at_once(path)) continue;
    const bool is_read =
        std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) { return is_same_file(path, input); });
    if (is_read || is_at(STDIN_FILENO, path)) {
      throw ConfigError(fmt::format("--{} {}: would replace what is read; name another file", option, path));
    }
    for (const auto& [other, file] : seen) {
      if (!is_same_file(path, file)) continue;
      throw ConfigError(fmt::format("--{} and --{} name one file, {}; name two", other, option, path));
    }
    require_writable(option, path);
    if (is_text_of(checkpoint, path, inputs)) {
      throw ConfigError(fmt::format("--{} {}: would replace a text that the run of {} has read; name another file",
                                    option, path, checkpoint));
    }
    seen.emplace_back(option, path);
  }
  for (const auto& [name, file] : streams) {
    std::error_code error;
    const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", file), error);
    if (error || !fs::is_regular_file(path, error) || !is_text_of(checkpoint, path, inputs)) continue;
    if (is_at(STDERR_FILENO, path)) ::close(STDERR_FILENO);  // the message must not go there either
    throw ConfigError(fmt::format("{}: goes to {}, a text that the run of {} has read; name another file", name,
                                  show_controls(path.native()), checkpoint));
  }
  for (const auto& [option, path] : seen) {
    for (const auto& [name, file] : streams) {
      if (!is_at(file, path)) continue;
      throw ConfigError(fmt::format("--{} {}: would replace the file that {} goes to; name two", option, path, name));
    }
  }
}

}  // namespace weft

#include "weft/core/machine_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr Index kUnlimited = std::numeric_limits<Index>::max();

/// The text of a file of the system; empty if there is none.
std::string text_of(const fs::path& path) {
  try {
    std::error_code none;
    return fs::is_regular_file(path, none) ? read_file(path) : "";
  } catch (const Error&) {
    return "";
  }
}

/// The number after `key` at the beginning of a line, such as "MemAvailable:" or "total_inactive_file"; the first number of
/// the text for an empty key.
std::optional<Index> number_after(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    Index number = 0;
    const auto [last, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error == std::errc()) return number;
    if (error == std::errc::result_out_of_range) return kUnlimited;
    if (key.empty()) return std::nullopt;
  }
  return std::nullopt;
}

void lower(MemoryRoom& room, Index bytes, const char* limit) {
  if (bytes < room.bytes) room = {std::max<Index>(bytes, 0), limit};
}

/// The names that the files of control groups have in one of their versions.
struct GroupFiles {
  const char *limit, *used, *reclaimable;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

/// Lowers the room to what the group at `mount`/`group` and those above it leave. What is used counts without cached files
/// that the system would drop first.
void lower_to_groups(const fs::path& mount, const fs::path& group, const GroupFiles& files, MemoryRoom& room) {
  for (fs::path path = group;; path = path.parent_path()) {
    const fs::path folder = path.empty() ? mount : mount / path;
    const auto limit = number_after(text_of(folder / files.limit), "");
    const auto used = number_after(text_of(folder / files.used), "");
    if (limit && used) {
      const Index cached = number_after(text_of(folder / "memory.stat"), files.reclaimable).value_or(0);
      lower(room, *limit - std::max<Index>(*used - cached, 0), "left in this control group (container)");
    }
    if (path.empty()) return;
  }
}

Index limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return kUnlimited;
  return limit.rlim_cur >= static_cast<rlim_t>(kUnlimited) ? kUnlimited : static_cast<Index>(limit.rlim_cur);
}

}  // namespace

ResidentMemory resident_memory() {
  const std::string status = text_of("/proc/self/status");
  return {1024 * number_after(status, "VmRSS:").value_or(0), 1024 * number_after(status, "VmHWM:").value_or(0)};
}

MemoryRoom memory_room(const fs::path& root) {
  MemoryRoom room{kUnlimited, "no limit"};
  if (const auto available = number_after(text_of(root / "proc/meminfo"), "MemAvailable:")) {
    lower(room, 1024 * *available, "free on this machine");
  }
  const std::string groups = text_of(root / "proc/self/cgroup");  // lines "number:controllers:/path"
  for (std::size_t begin = 0; begin < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string_view line = std::string_view(groups).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string_view group = line.substr(second + 1);
    group.remove_prefix(std::min(group.find_first_not_of('/'), group.size()));
    if (controllers.empty()) lower_to_groups(root / "sys/fs/cgroup", group, kVersion2, room);
    std::string list(",");
    list.append(controllers).append(",");
    if (list.find(",memory,") != list.npos) {
      lower_to_groups(root / "sys/fs/cgroup/memory", group, kVersion1, room);
    }
  }
  const Index space = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
  if (space != kUnlimited || data != kUnlimited) start_threads();
  const std::string status = text_of("/proc/self/status");
  if (space != kUnlimited) {
    lower(room, space - 1024 * number_after(status, "VmSize:").value_or(0), "left of the address space (ulimit -v)");
  }
  if (data != kUnlimited) {
    lower(room, data - 1024 * number_after(status, "VmData:").value_or(0), "left of the data segment (ulimit -d)");
  }
  return room;
}

}  // namespace weft

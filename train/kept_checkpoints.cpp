#include "weft/train/kept_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/core/folder.h"
#include "weft/train/validation_history.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNameBegin = "step-", kNameEnd = ".safetensors";

}  // namespace

std::optional<Index> step_of(std::string_view name) {
  if (!name.starts_with(kNameBegin)) return std::nullopt;
  Index step = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + kNameBegin.size(), last, step);
  const std::string_view rest(end, static_cast<std::size_t>(last - end));
  // What from_chars reads in more than one way is not ours: "step-007".
  if (error != std::errc() || step < 0 || !rest.starts_with(kNameEnd) ||
      !name.substr(kNameBegin.size()).starts_with(fmt::to_string(step)))
    return std::nullopt;
  return step;
}

fs::path step_checkpoint(const fs::path& folder, Index step) {
  return folder / fmt::format("{}{}{}", kNameBegin, step, kNameEnd);
}

std::set<Index> kept_steps(std::span<const ValidationEntry> validations, const TrainingConfig& training) {
  std::set<Index> steps;
  if (training.keep_best > 1) {
    for (const Index step : best_steps(validations, training.best_metric, training.keep_best)) steps.insert(step);
  }
  const std::size_t last = std::min(validations.size(), static_cast<std::size_t>(training.keep_last));
  for (const ValidationEntry& validation : validations.last(last)) steps.insert(validation.step);
  return steps;
}

void remove_step_checkpoints(const fs::path& folder, const std::set<Index>& kept) {
  std::set<Index> found;
  for (const std::string& name : names_in(folder)) {
    if (const auto step = step_of(name)) found.insert(*step);
  }
  for (const Index step : found) {
    const fs::path path = step_checkpoint(folder, step);
    remove_leftovers(path);
    if (kept.count(step) > 0) continue;
    std::error_code error;
    fs::remove(path, error);
    if (error) throw Error(fmt::format("{}: cannot remove ({})", path.string(), error.message()));
  }
}

void copy_checkpoint(const fs::path& from, const fs::path& to) {
  constexpr std::uint64_t kPiece = 1 << 20;
  const InputFile file(from);
  write_file_atomically(to, [&](FileWriter& writer) {
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kPiece, file.size())));
    for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at)));
      file.read_at(at, piece);
      writer.write(piece);
    }
  });
}

}  // namespace weft

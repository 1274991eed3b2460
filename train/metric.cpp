#include "weft/train/metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/core/error.h"
#include "weft/core/threads.h"

namespace weft {

std::vector<Index> LineCounts::sums() const {
  std::vector<Index> sums(width_);
  for (std::size_t i = 0; i < numbers_.size(); ++i) sums[i % width_] += numbers_[i];
  return sums;
}

std::vector<Index> LineCounts::sums(std::span<const std::size_t> lines) const {
  std::vector<Index> sums(width_);
  for (const std::size_t line : lines) {
    const std::span<const Index> numbers = (*this)[line];
    for (std::size_t i = 0; i < width_; ++i) sums[i] += numbers[i];
  }
  return sums;
}

LineCounts count_lines(const Metric& metric, std::span<const std::string> hypotheses,
                       std::span<const std::vector<std::string>> references) {
  if (references.empty()) {
    throw DataError(fmt::format("{} needs at least one reference for each line, found none", metric.name()));
  }
  for (const auto& reference : references) {
    if (reference.size() != hypotheses.size()) {
      throw DataError(fmt::format("{}: {} hypotheses but {} references; line i of one belongs to line i of the other",
                                  metric.name(), hypotheses.size(), reference.size()));
    }
  }
  LineCounts counts(hypotheses.size(), metric.width());
  constexpr Index kTile = 64;
  parallel_for(static_cast<Index>(hypotheses.size()), kTile, [&](Index begin, Index end) {
    std::vector<std::string_view> of_line(references.size());
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      std::transform(references.begin(), references.end(), of_line.begin(),
                     [i](const auto& lines) { return std::string_view(lines[i]); });
      metric.count(hypotheses[i], of_line, counts[i]);
    }
  });
  return counts;
}

std::string signature(const Metric& metric, std::size_t references, std::optional<Resampling> resampling) {
  const std::string bootstrap =
      resampling ? fmt::format("bs:{}|seed:{}|", resampling->resamples, resampling->seed) : "";
  return fmt::format("nrefs:{}|{}{}|version:weft-" WEFT_VERSION, references, bootstrap, metric.settings());
}

std::string format_score(const Metric& metric, std::span<const Index> sums, const std::string& signature) {
  const std::string details = metric.details(sums);
  return fmt::format("{}{}{} = {:.2f}{}{}", metric.name(), signature.empty() ? "" : "|", signature, metric.score(sums),
                     details.empty() ? "" : " ", details);
}

}  // namespace weft

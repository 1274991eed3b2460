#include "weft/train/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"

namespace weft {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double half_width_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const std::size_t outside = scores.size() / 40;
  return 0.5 * (scores[scores.size() - 1 - outside] - scores[outside]);
}

double p_value_of(const std::vector<double>& scores, const std::vector<double>& baseline, double difference) {
  std::vector<double> differences(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) differences[i] = std::abs(scores[i] - baseline[i]);
  const double mean = mean_of(differences);
  const auto beyond = std::count_if(differences.begin(), differences.end(),
                                    [=](double of_resample) { return of_resample - mean > difference; });
  return static_cast<double>(beyond + 1) / static_cast<double>(scores.size() + 1);
}

}  // namespace

std::vector<BootstrapResult> paired_bootstrap(const Metric& metric, std::span<const LineCounts> outputs,
                                              const Resampling& resampling) {
  if (outputs.empty() || outputs[0].lines() == 0) throw DataError("bootstrap resampling needs lines, found none");
  const std::size_t lines = outputs[0].lines();
  for (const LineCounts& output : outputs) {
    if (output.lines() != lines) {
      throw DataError(
          fmt::format("bootstrap resampling needs outputs of the same text, found one of {} and one of {} "
                      "lines",
                      lines, output.lines()));
    }
  }

  // Every resample draws from a stream of its own, so that any thread may take it.
  std::vector<std::vector<double>> scores(outputs.size(),
                                          std::vector<double>(static_cast<std::size_t>(resampling.resamples)));
  parallel_for(resampling.resamples, 8, [&](Index begin, Index end) {
    std::vector<std::size_t> drawn(lines);
    for (Index resample = begin; resample < end; ++resample) {
      Random random(resampling.seed, static_cast<std::uint64_t>(resample));
      for (std::size_t& line : drawn) line = static_cast<std::size_t>(random.below(lines));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        scores[i][static_cast<std::size_t>(resample)] = metric.score(outputs[i].sums(drawn));
      }
    }
  });

  std::vector<BootstrapResult> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    BootstrapResult result{metric.score(outputs[i].sums()), mean_of(scores[i]), half_width_of(scores[i]), {}};
    if (i > 0) {
      const double difference = std::abs(result.score - results[0].score);
      result.p_value = outputs[i] == outputs[0] ? 1.0 : p_value_of(scores[i], scores[0], difference);
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace weft

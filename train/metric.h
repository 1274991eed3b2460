// Scores of texts against references. A metric reads a line once and keeps whole numbers of it; the score of
// any set of lines depends on the sums of these numbers alone, so that lines can be scored again in groups or
// drawn at random (train/bootstrap.h) without being read again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/types.h"

namespace weft {

/// A score of a text from 0 to 100. Its numbers are those of sacreBLEU, to every printed digit.
class Metric {
 public:
  virtual ~Metric() = default;

  /// What a user calls it: "bleu", "chrf", "chrf++".
  virtual std::string key() const = 0;
  /// What sacreBLEU prints before the score: "BLEU", "chrF2", "chrF2++".
  virtual std::string name() const = 0;
  /// How the score is made, in sacreBLEU's form: "case:mixed|eff:no|tok:13a|smooth:exp".
  virtual std::string settings() const = 0;

  /// How many numbers are kept of a line.
  virtual std::size_t width() const = 0;
  /// Writes the numbers of a line of valid UTF-8 against its references, of which there is at least one.
  /// May be called from several threads at once.
  virtual void count(std::string_view hypothesis, std::span<const std::string_view> references,
                     std::span<Index> numbers) const = 0;
  /// The score of lines from the sums of their numbers; 0 if there are none.
  virtual double score(std::span<const Index> sums) const = 0;
  /// What sacreBLEU prints after the score, such as "70.0/44.4/25.0/14.3 (BP = ...)"; may be empty.
  virtual std::string details(std::span<const Index> sums) const = 0;
};

/// The numbers that a metric keeps of the lines of a text.
class LineCounts {
 public:
  LineCounts(std::size_t lines, std::size_t width) : width_(width), numbers_(lines * width) {}

  std::size_t lines() const { return width_ == 0 ? 0 : numbers_.size() / width_; }
  std::size_t width() const { return width_; }
  std::span<Index> operator[](std::size_t line) { return {numbers_.data() + line * width_, width_}; }
  std::span<const Index> operator[](std::size_t line) const { return {numbers_.data() + line * width_, width_}; }

  /// The sums over all lines, or over some, each as often as it is named.
  std::vector<Index> sums() const;
  std::vector<Index> sums(std::span<const std::size_t> lines) const;

  bool operator==(const LineCounts&) const = default;

 private:
  std::size_t width_;
  std::vector<Index> numbers_;
};

/// Counts the lines of a text.
///
/// references[r][i] is the r-th reference of hypotheses[i]; a blank line is a line without words. Throws
/// DataError for no references or unequal counts of lines.
LineCounts count_lines(const Metric& metric, std::span<const std::string> hypotheses,
                       std::span<const std::vector<std::string>> references);

/// The resampling that belongs to a signature.
struct Resampling {
  Index resamples = 1000;
  std::uint64_t seed = 12345;
};

/// Says how a score was made, in sacreBLEU's form:
/// `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-...`.
std::string signature(const Metric& metric, std::size_t references, std::optional<Resampling> resampling = {});

/// Writes a score as sacreBLEU prints it with two decimals: `BLEU = 34.95 70.0/44.4/25.0/14.3 (BP = ...)`, or
/// `BLEU|<signature> = 34.95 ...` if there is a signature.
std::string format_score(const Metric& metric, std::span<const Index> sums, const std::string& signature = "");

}  // namespace weft

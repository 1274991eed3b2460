#include "weft/train/bootstrap.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "score_fixture.h"
#include "throws.h"
#include "weft/core/error.h"
#include "weft/core/random.h"
#include "weft/core/threads.h"
#include "weft/train/bleu.h"
#include "weft/train/chrf.h"

using namespace weft;

namespace {

/// Lines of ten letters, and the same with about `wrong` of a hundred replaced.
Strings reference_lines(std::size_t lines) {
  Strings text;
  Random random(3);
  for (std::size_t i = 0; i < lines; ++i) {
    std::string line;
    for (int n = 0; n < 10; ++n) line += std::string(1, static_cast<char>('a' + random.below(26))) + " ";
    text.push_back(line);
  }
  return text;
}

Strings with_errors(Strings text, std::uint64_t wrong, std::uint64_t seed) {
  Random random(seed);
  for (std::string& line : text) {
    for (char& c : line) {
      if (c != ' ' && random.below(100) < wrong) c = 'Z';
    }
  }
  return text;
}

std::vector<LineCounts> counts_of(const Metric& metric, const std::vector<Strings>& outputs, const Strings& reference) {
  std::vector<LineCounts> counts;
  for (const Strings& output : outputs) counts.push_back(count_lines(metric, output, std::vector<Strings>{reference}));
  return counts;
}

/// A metric whose score is the mean of one number a line.
class Mean : public Metric {
 public:
  std::string key() const override { return "mean"; }
  std::string name() const override { return "mean"; }
  std::string settings() const override { return ""; }
  std::size_t width() const override { return 2; }
  void count(std::string_view hypothesis, std::span<const std::string_view>, std::span<Index> numbers) const override {
    numbers[0] = static_cast<Index>(hypothesis.size());
    numbers[1] = 1;
  }
  double score(std::span<const Index> sums) const override {
    return static_cast<double>(sums[0]) / static_cast<double>(sums[1]);
  }
  std::string details(std::span<const Index>) const override { return ""; }
};

}  // namespace

TEST_CASE("the numbers are those of the definition, worked out by hand from the same draws") {
  const Strings first = {"aaaa", "a", "aa", "aaaaaaa", "aaa"}, second = {"aaa", "aaaaa", "aaaa", "aaaaaa", "aaaaaaaa"};
  const std::vector<LineCounts> counts = counts_of(Mean(), {first, second}, Strings(5));
  const Resampling resampling{200, 42};
  const auto results = paired_bootstrap(Mean(), counts, resampling);

  std::vector<double> a, b, differences;
  for (std::uint64_t r = 0; r < 200; ++r) {
    Random random(42, r);
    double sum_a = 0, sum_b = 0;
    for (int i = 0; i < 5; ++i) {
      const auto line = static_cast<std::size_t>(random.below(5));
      sum_a += static_cast<double>(first[line].size());
      sum_b += static_cast<double>(second[line].size());
    }
    a.push_back(sum_a / 5);
    b.push_back(sum_b / 5);
    differences.push_back(std::abs(a.back() - b.back()));
  }
  const auto mean = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  };
  const auto beyond =
      std::count_if(differences.begin(), differences.end(), [&](double d) { return d - mean(differences) > 1.8; });
  REQUIRE(beyond > 0);
  REQUIRE(results.size() == 2);
  CHECK(results[0].score == 3.4);
  CHECK(results[1].score == 5.2);
  CHECK(results[0].mean == doctest::Approx(mean(a)));
  CHECK(results[1].mean == doctest::Approx(mean(b)));
  CHECK_FALSE(results[0].p_value);
  CHECK(*results[1].p_value == doctest::Approx(static_cast<double>(beyond + 1) / 201));
  std::sort(b.begin(), b.end());
  CHECK(results[1].half_width == doctest::Approx(0.5 * (b[194] - b[5])));  // a fortieth of 200 on each side
}

TEST_CASE("a clear difference is significant, one of chance is not, and one that is none has p-value 1") {
  const Strings reference = reference_lines(200);
  const Strings baseline = with_errors(reference, 20, 1);
  for (const bool is_bleu : {true, false}) {
    const Bleu bleu;
    const Chrf chrf;
    const Metric& metric = is_bleu ? static_cast<const Metric&>(bleu) : chrf;
    const auto counts = counts_of(
        metric, {baseline, with_errors(reference, 10, 2), with_errors(reference, 20, 4), baseline}, reference);
    const auto results = paired_bootstrap(metric, counts, {1000, 12345});
    CAPTURE(metric.name());
    CHECK(results[1].score > results[0].score);
    CHECK(*results[1].p_value == doctest::Approx(1.0 / 1001));
    CHECK(*results[2].p_value > 0.05);
    CHECK(*results[3].p_value == 1.0);
    for (const BootstrapResult& result : results) {
      CHECK(std::abs(result.mean - result.score) < result.half_width);
      CHECK(result.half_width > 0);
    }
  }
}

TEST_CASE("the seed decides, threads do not") {
  const Strings reference = reference_lines(40);
  const auto counts = counts_of(Chrf(), {with_errors(reference, 20, 1), with_errors(reference, 17, 2)}, reference);
  const auto run = [&](std::uint64_t seed) {
    const auto result = paired_bootstrap(Chrf(), counts, {300, seed})[1];
    return std::vector<double>{result.score, result.mean, result.half_width, *result.p_value};
  };
  const int before = threads();
  set_threads(1);
  const auto one = run(1), other = run(2);
  set_threads(3);
  CHECK(run(1) == one);
  set_threads(before);
  CHECK(one[0] == other[0]);
  CHECK(one[1] != other[1]);
}

TEST_CASE("what cannot be compared is refused") {
  const std::vector<LineCounts> none, empty{LineCounts(0, 10)}, unequal{LineCounts(3, 10), LineCounts(4, 10)};
  CHECK_THROWS_SAYING(paired_bootstrap(Bleu(), none, {}), "needs lines", DataError);
  CHECK_THROWS_SAYING(paired_bootstrap(Bleu(), empty, {}), "needs lines", DataError);
  CHECK_THROWS_SAYING(paired_bootstrap(Bleu(), unequal, {}), "one of 3 and one of 4 lines", DataError);
}

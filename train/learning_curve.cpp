// Two panels side by side on a card. Lengths are in SVG user units, which viewers show as pixels.
#include "weft/train/learning_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "weft/core/error.h"
#include "weft/train/svg.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

constexpr double kTitleHeight = 64, kPanelGap = 64, kLeft = 48;  // kLeft: room for the numbers of an axis
constexpr double kPanelWidth = 400, kPanelHeight = 260, kBelow = 46, kLegendRow = 20;
constexpr double kLeastSpan = 1e-300;     // of an axis; of less no tenth can be told
constexpr std::size_t kMostPoints = 300;  // of a curve; more are averaged
constexpr std::array<std::string_view, 6> kColours = {"#1f527c", "#c2562d", "#3c8f5f", "#8a4f9e", "#b8860b", "#4a4a4a"};

/// A metric of validations: its name in configs, how it is called, and the factor to the unit that is shown.
struct PlottedMetric {
  std::string_view name, title;
  double ValidationEntry::*value;
  double factor;
};

const std::array<PlottedMetric, 6> kMetrics = {
    {{"bleu", "BLEU", &ValidationEntry::bleu, 1},
     {"chrf", "chrF", &ValidationEntry::chrf, 1},
     {"loss", "loss", &ValidationEntry::loss, 1},
     {"perplexity", "perplexity", &ValidationEntry::perplexity, 1},
     {"token_accuracy", "token accuracy", &ValidationEntry::token_accuracy, 100},
     {"exact_match", "exact match", &ValidationEntry::exact_match, 100}}};

struct Point {
  double x, y;
};
using Curve = std::vector<Point>;

/// A round distance between ticks, so that about five fit.
double tick_distance(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 5)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (range / (step * power) <= 6) return step * power;
  }
  return 10 * power;
}

/// Whether a value has a place on an axis: sums and differences of a few such values are finite.
bool can_be_drawn(double value) { return std::abs(value) < 1e300; }

/// A range of an axis, with something to show even for a single value, and for values so close together that the numbers
/// of the axis could not tell them apart: ticks of less than the last digit of a value would never come to an end.
struct AxisRange {
  double low = INFINITY, high = -INFINITY;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    if (!(low <= high)) *this = {0, 1};
    const double size = std::max(std::abs(low), std::abs(high));
    const bool apart = high - low > std::max(size * 1e-6, kLeastSpan);
    const double room = apart ? (high - low) * 0.05 : std::max(size * 0.1, 0.5);
    low -= room;
    high += room;
  }
};

/// At most kMostPoints points, each the mean of equally many.
Curve thinned(const Curve& curve) {
  if (curve.size() <= kMostPoints) return curve;
  Curve out;
  for (std::size_t i = 0; i < kMostPoints; ++i) {
    const std::size_t begin = i * curve.size() / kMostPoints, end = (i + 1) * curve.size() / kMostPoints;
    Point sum{0, 0};
    for (std::size_t k = begin; k < end; ++k) sum = {sum.x + curve[k].x, sum.y + curve[k].y};
    const auto count = static_cast<double>(end - begin);
    out.push_back({sum.x / count, sum.y / count});
  }
  return out;
}

/// Where an update stands along the bottom: its number, or the minutes of training, between two lines of the log by
/// proportion. The lines rise, so that each is found by halves: the time does not grow with the square of a log.
double place(const std::vector<StepEntry>& steps, Index step, bool by_time) {
  if (!by_time || steps.empty()) return static_cast<double>(step);
  const auto after =
      std::partition_point(steps.begin(), steps.end(), [&](const StepEntry& e) { return e.step < step; });
  if (after == steps.end()) return steps.back().elapsed_seconds / 60;
  const double from_step = after == steps.begin() ? 0 : static_cast<double>(std::prev(after)->step);
  const double from_time = after == steps.begin() ? 0 : std::prev(after)->elapsed_seconds;
  const double to_step = static_cast<double>(after->step);
  const double part = to_step > from_step ? (static_cast<double>(step) - from_step) / (to_step - from_step) : 1;
  return (from_time + part * (after->elapsed_seconds - from_time)) / 60;
}

/// A curve and how it is drawn.
struct Drawn {
  Curve curve;
  std::string_view colour;
  bool dots;
};

class CurvePicture {
 public:
  template <class... Args>
  void put(const char* format, const Args&... args) {
    fmt::format_to(std::back_inserter(svg_), fmt::runtime(format), args...);
  }

  /// One panel with its axes.
  void panel(double left, double top, std::string_view title, std::string_view below,
             const std::vector<Drawn>& curves) {
    AxisRange x, y;
    x.add(0);
    for (const Drawn& drawn : curves) {
      for (const Point& p : drawn.curve) {
        x.add(p.x);
        y.add(p.y);
      }
    }
    if (x.high < kLeastSpan) x.high = 1;
    y.widen();
    const auto at_x = [&](double value) { return left + (value - x.low) / (x.high - x.low) * kPanelWidth; };
    const auto at_y = [&](double value) {
      return top + kPanelHeight - (value - y.low) / (y.high - y.low) * kPanelHeight;
    };
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"13\" font-weight=\"600\" fill=\"{}\">{}</text>\n", left, top - 12,
        svg::kSoftInk, title);
    put("<g font-size=\"11\" fill=\"{}\" stroke=\"none\">\n", svg::kSoftInk);
    const double step_y = tick_distance(y.high - y.low), step_x = tick_distance(x.high - x.low);
    for (double value = std::ceil(y.low / step_y) * step_y; value <= y.high; value += step_y) {
      put("<path d=\"M{:.1f} {:.1f}h{}\" stroke=\"{}\"/>\n", left, at_y(value), kPanelWidth, svg::kLine);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n", left - 8, at_y(value) + 4,
          std::abs(value) < step_y / 2 ? 0.0 : value);
    }
    for (double value = 0; value <= x.high; value += step_x) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n", at_x(value),
          top + kPanelHeight + 18, value);
    }
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n</g>\n", left + kPanelWidth / 2,
        top + kPanelHeight + 36, below);
    for (const Drawn& drawn : curves) {
      put("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\" points=\"", drawn.colour,
          drawn.dots ? "2" : "1", drawn.dots ? "1" : "0.6");
      for (const Point& p : drawn.curve) put("{:.1f},{:.1f} ", at_x(p.x), at_y(p.y));
      put("\"/>\n");
      if (!drawn.dots) continue;
      for (const Point& p : drawn.curve) {
        put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"><title>{:.6g}: {:.5g}</title></circle>\n",
            at_x(p.x), at_y(p.y), drawn.colour, p.x, p.y);
      }
    }
  }

  std::string take() { return std::move(svg_); }

 private:
  std::string svg_;
};

}  // namespace

std::vector<std::string> curve_metrics() {
  std::vector<std::string> names;
  for (const PlottedMetric& metric : kMetrics) names.emplace_back(metric.name);
  return names;
}

std::string learning_curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options) {
  const auto metric =
      std::find_if(kMetrics.begin(), kMetrics.end(), [&](const PlottedMetric& m) { return m.name == options.metric; });
  if (metric == kMetrics.end()) {
    throw ConfigError(
        fmt::format("\"{}\" is no metric of the log; take {}", options.metric, fmt::join(curve_metrics(), ", ")));
  }
  std::vector<Drawn> losses, scores;
  std::vector<std::string> legend;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::vector<StepEntry>& steps = runs[r].entries.steps;
    const std::vector<ValidationEntry>& validations = runs[r].entries.validations;
    if (steps.empty() && validations.empty()) {
      throw DataError(fmt::format("{}: its log has no entries yet", runs[r].name));
    }
    const std::string_view colour = kColours[r % kColours.size()];
    Curve trained, validated, scored;
    const auto add = [](Curve& curve, const Point& p) {
      if (can_be_drawn(p.x) && can_be_drawn(p.y)) curve.push_back(p);
    };
    for (const StepEntry& e : steps) add(trained, {place(steps, e.step, options.by_time), e.loss});
    double best = NAN;
    for (const ValidationEntry& e : validations) {
      const double x = place(steps, e.step, options.by_time), score = e.*(metric->value) * metric->factor;
      add(validated, {x, e.loss});
      add(scored, {x, score});
      if (!std::isfinite(score)) continue;
      const bool less = metric->name == "loss" || metric->name == "perplexity";
      if (!std::isfinite(best) || (less ? score < best : score > best)) best = score;
    }
    legend.push_back(runs[r].name + (std::isfinite(best) ? fmt::format(": best {} {:.4g}{}", metric->title, best,
                                                                       metric->factor == 100 ? " %" : "")
                                                         : ""));
    losses.push_back({thinned(trained), colour, false});
    losses.push_back({std::move(validated), colour, true});
    scores.push_back({std::move(scored), colour, true});
  }
  const double width = 2 * svg::kMargin + 2 * (kLeft + kPanelWidth) + kPanelGap - kLeft;
  const double top = svg::kMargin + kTitleHeight, legend_top = top + kPanelHeight + kBelow;
  const double height = legend_top + kLegendRow * static_cast<double>(runs.size()) + svg::kMargin;
  CurvePicture picture;
  picture.put(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\" aria-label=\"{2}\" font-family=\"system-ui, sans-serif\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" rx=\"14\" fill=\"{3}\" stroke=\"{4}\"/>\n",
      width, height, escape_xml(options.title), svg::kPaper, svg::kLine);
  picture.put("<text x=\"{}\" y=\"{}\" font-size=\"20\" font-weight=\"600\" fill=\"{}\">{}</text>\n", svg::kMargin,
              svg::kMargin + 18, svg::kInk, escape_xml(clip_text(options.title, 80)));
  const std::string_view below = options.by_time ? "minutes of training" : "updates";
  picture.panel(svg::kMargin + kLeft, top, "loss: training (thin), validation (dots)", below, losses);
  picture.panel(svg::kMargin + kLeft + kPanelWidth + kPanelGap, top,
                fmt::format("{} of the validations{}", metric->title, metric->factor == 100 ? ", %" : ""), below,
                scores);
  for (std::size_t r = 0; r < legend.size(); ++r) {
    const double y = legend_top + kLegendRow * static_cast<double>(r);
    picture.put(
        "<path d=\"M{} {}h22\" stroke=\"{}\" stroke-width=\"3\"/>\n<text x=\"{}\" y=\"{}\" font-size=\"12\" "
        "fill=\"{}\">{}</text>\n",
        svg::kMargin + kLeft, y + 10, kColours[r % kColours.size()], svg::kMargin + kLeft + 30, y + 14, svg::kInk,
        escape_xml(clip_text(legend[r], 110)));
  }
  picture.put("</svg>\n");
  return picture.take();
}

}  // namespace weft

// Lays out one large panel (the mean) and one small panel per head on a card, beside the large one if they
// fit, else below it. Lengths are in SVG user units, which viewers show as pixels. Cells are drawn in a group
// scaled so that a cell is 1 by 1: that keeps the file small.
#include "weft/train/attention_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/types.h"
#include "weft/train/svg.h"
#include "weft/train/text_format.h"

namespace weft {
namespace {

constexpr double kGap = 26;      // between panels
constexpr double kTitles = 66;   // title and subtitle
constexpr double kCaption = 24;  // above each panel
constexpr double kCaptionFont = 13;
constexpr double kFooter = 44;       // legend
constexpr double kAspect = 1.6;      // width to height of the screen to fill
constexpr double kLeastWidth = 460;  // room for title and legend
constexpr double kSlant = 55;        // degrees of words that stand too close to lie flat
constexpr Index kLongestLabel = 18;  // columns of text; the whole word is in the tooltip
constexpr double kRadians = 3.14159265358979323846 / 180;

struct Colour {
  double red, green, blue;
};
constexpr std::array<Colour, 6> kRamp = {
    {{243, 241, 235}, {201, 224, 222}, {125, 186, 193}, {60, 134, 160}, {31, 82, 124}, {18, 36, 76}}};

using Out = std::back_insert_iterator<std::string>;

/// Position of a weight on the colour ramp, 0 to 1. The root spreads the small weights that long sentences
/// have.
double tone(double weight) { return weight > 0 ? std::pow(std::min(weight, 1.0), 0.65) : 0; }

std::string colour(double weight) {
  const double at = tone(weight) * static_cast<double>(kRamp.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(at), kRamp.size() - 2);
  const double t = at - static_cast<double>(i);
  const auto mix = [t](double a, double b) { return static_cast<int>(std::lround(a + t * (b - a))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(kRamp[i].red, kRamp[i + 1].red),
                     mix(kRamp[i].green, kRamp[i + 1].green), mix(kRamp[i].blue, kRamp[i + 1].blue));
}

/// Everything that all panels of one size share.
struct PanelStyle {
  double cell, font;
  double left, top, right;  // room for the target words, the source words, and slanted words past the last column
  bool slanted;
  double width, height;  // with words and caption
};

/// Where the heads' panels go: a grid `across` panels wide, beside the mean or below it.
struct Layout {
  PanelStyle large, small;
  bool beside = false;
  std::size_t across = 0;
  double width = 0, height = 0;  // of all panels
};

class AttentionPicture {
 public:
  AttentionPicture(const AttentionMap& map, std::string_view title) : map_(map), title_(title) {
    for (const std::string& word : map.source) source_.push_back(clip_text(word, kLongestLabel));
    for (const std::string& word : map.target) target_.push_back(clip_text(word, kLongestLabel));
  }

  std::string draw();

 private:
  PanelStyle style(double cell, std::string_view caption) const;
  Layout best_layout(std::string_view mean_caption) const;
  void panel(double x, double y, const PanelStyle& s, std::string_view caption, const std::vector<float>& weights);
  void words(const PanelStyle& s);
  void cells(const PanelStyle& s, const std::vector<float>& weights);
  void legend(double x, double y);
  std::vector<float> mean() const;

  template <typename... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(Out(svg_), text, std::forward<Args>(args)...);
  }

  const AttentionMap& map_;
  const std::string_view title_;
  std::vector<std::string> source_, target_;  // as shown
  std::string svg_;
};

/// Width of text in a sans-serif font, on the generous side.
double text_width(std::string_view text, double font) { return static_cast<double>(display_width(text)) * font * 0.6; }

double widest(const std::vector<std::string>& labels, double font) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, text_width(label, font));
  return width;
}

PanelStyle AttentionPicture::style(double cell, std::string_view caption) const {
  const auto columns = static_cast<double>(source_.size()), rows = static_cast<double>(target_.size());
  PanelStyle s{};
  s.cell = cell;
  s.font = std::clamp(cell * 0.45, 9.0, 17.0);
  const double source = widest(source_, s.font);
  s.slanted = source > cell * 0.95;
  s.left = widest(target_, s.font) + 8;
  s.top = kCaption + (s.slanted ? source * std::sin(kSlant * kRadians) + s.font : s.font + 8);
  if (s.slanted) {
    for (std::size_t i = 0; i < source_.size(); ++i) {  // a word may lean out over the last column
      const double lean = text_width(source_[i], s.font) * std::cos(kSlant * kRadians) + s.font;
      s.right = std::max(s.right, (static_cast<double>(i) + 0.5 - columns) * cell + lean);
    }
  }
  s.width = s.left + std::max(columns * cell + s.right, text_width(caption, kCaptionFont) * 1.1);
  s.height = s.top + rows * cell;
  return s;
}

/// Tries every grid beside and below the mean and returns the one that shows largest on a screen.
Layout AttentionPicture::best_layout(std::string_view mean_caption) const {
  const std::size_t heads = map_.heads.size();
  const double cell = std::clamp(std::floor(520 / static_cast<double>(source_.size())), 14.0, 44.0);
  const PanelStyle small = style(std::max(11.0, std::round(cell * 0.5)), "head 12");
  const double step_x = small.width + kGap, step_y = small.height + kGap;
  Layout best;
  double best_size = 0;
  for (std::size_t across = 1; across <= heads; ++across) {
    const double grid_width = static_cast<double>(across) * step_x - kGap;
    const double grid_height = static_cast<double>((heads + across - 1) / across) * step_y - kGap;
    for (const bool beside : {true, false}) {
      PanelStyle large = style(cell, mean_caption);
      if (beside && large.height < grid_height) {  // let the mean grow into the room below it
        const double more = (grid_height - large.height) / static_cast<double>(target_.size());
        large = style(std::floor(std::min(cell * 1.4, cell + more)), mean_caption);
      }
      const Layout layout =
          beside
              ? Layout{large,
                       small,
                       beside,
                       across,
                       large.width + kGap + grid_width,
                       std::max(large.height, grid_height)}
              : Layout{
                    large, small, beside, across, std::max(large.width, grid_width), large.height + kGap + grid_height};
      const double size = std::max(layout.width, (layout.height + kTitles + kFooter) * kAspect);
      if (best.across == 0 || size < best_size) {
        best = layout;
        best_size = size;
      }
    }
  }
  return best;
}

std::vector<float> AttentionPicture::mean() const {
  std::vector<float> mean(source_.size() * target_.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const auto& head : map_.heads) sum += static_cast<double>(head[i]);
    mean[i] = static_cast<float>(sum / static_cast<double>(map_.heads.size()));
  }
  return mean;
}

void AttentionPicture::words(const PanelStyle& s) {
  put("<g font-size=\"{:.1f}\" fill=\"{}\">\n", s.font, svg::kInk);
  for (std::size_t i = 0; i < source_.size(); ++i) {
    const double x = (static_cast<double>(i) + 0.5) * s.cell;
    if (s.slanted) {
      put("<text transform=\"translate({:.1f} -6) rotate(-{})\">{}</text>\n", x + s.font * 0.35, kSlant,
          escape_xml(source_[i]));
    } else {
      put("<text x=\"{:.1f}\" y=\"-7\" text-anchor=\"middle\">{}</text>\n", x, escape_xml(source_[i]));
    }
  }
  for (std::size_t j = 0; j < target_.size(); ++j) {
    put("<text x=\"-8\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        (static_cast<double>(j) + 0.5) * s.cell + s.font * 0.35, escape_xml(target_[j]));
  }
  svg_ += "</g>\n";
}

void AttentionPicture::cells(const PanelStyle& s, const std::vector<float>& weights) {
  const std::size_t columns = source_.size();
  std::vector<std::string> names;
  for (const std::string& word : map_.source) names.push_back(escape_xml(word));
  put("<g class=\"cells\" transform=\"scale({:.2f})\">\n", s.cell);
  for (std::size_t j = 0; j < target_.size(); ++j) {
    const std::string target = escape_xml(map_.target[j]);
    for (std::size_t i = 0; i < columns; ++i) {
      const double weight = static_cast<double>(weights[j * columns + i]);
      put("<rect x=\"{}.03\" y=\"{}.03\" width=\".94\" height=\".94\" rx=\".1\" fill=\"{}\">"
          "<title>{} → {}: {:.3f}</title></rect>\n",
          i, j, colour(weight), names[i], target, weight);
    }
  }
  svg_ += "</g>\n";
}

void AttentionPicture::panel(double x, double y, const PanelStyle& s, std::string_view caption,
                             const std::vector<float>& weights) {
  put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"13\" font-weight=\"600\" fill=\"{}\">{}</text>\n", x + s.left,
      y + 13, svg::kSoftInk, caption);
  put("<g transform=\"translate({:.1f} {:.1f})\">\n", x + s.left, y + s.top);
  words(s);
  cells(s, weights);
  svg_ += "</g>\n";
}

void AttentionPicture::legend(double x, double y) {
  constexpr int kSteps = 55;
  constexpr double kLong = 220, kHigh = 10;
  put("<g font-size=\"11\" fill=\"{}\">\n<text x=\"{:.1f}\" y=\"{:.1f}\">weight</text>\n", svg::kSoftInk, x, y + 9);
  const double left = x + 50;
  for (int i = 0; i < kSteps; ++i) {
    put("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "shape-rendering=\"crispEdges\"/>\n",
        left + i * kLong / kSteps, y, kLong / kSteps, kHigh, colour((i + 0.5) / kSteps));
  }
  for (const double tick : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", left + tick * kLong, y + kHigh + 13,
        tick);
  }
  svg_ += "</g>\n";
}

std::string AttentionPicture::draw() {
  const std::size_t heads = map_.heads.size();
  const std::string mean_caption = heads == 1 ? "mean of 1 head" : fmt::format("mean of {} heads", heads);
  const Layout layout = best_layout(mean_caption);
  const PanelStyle& large = layout.large;
  const PanelStyle& small = layout.small;
  const double step_x = small.width + kGap, step_y = small.height + kGap;
  const double inner_width = std::max(kLeastWidth, layout.width), inner_height = layout.height;
  const double width = inner_width + 2 * svg::kMargin, height = kTitles + inner_height + kFooter + 2 * svg::kMargin;

  put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "role=\"img\" aria-label=\"{2}\" font-family=\"system-ui, sans-serif\">\n",
      width, height, escape_xml(title_));
  put("<rect width=\"{:.0f}\" height=\"{:.0f}\" rx=\"14\" fill=\"{}\" stroke=\"{}\"/>\n", width, height, svg::kPaper,
      svg::kLine);
  put("<text x=\"{}\" y=\"{}\" font-size=\"20\" font-weight=\"600\" fill=\"{}\">{}</text>\n", svg::kMargin,
      svg::kMargin + 18, svg::kInk, escape_xml(clip_text(title_, static_cast<Index>(inner_width / 11.5))));
  put("<text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"{}\">source words across, target words down</text>\n",
      svg::kMargin, svg::kMargin + 40, svg::kSoftInk);

  const double top = svg::kMargin + kTitles;
  panel(svg::kMargin, top, large, mean_caption, mean());
  const double grid_x = layout.beside ? svg::kMargin + large.width + kGap : svg::kMargin;
  const double grid_y = layout.beside ? top : top + large.height + kGap;
  for (std::size_t h = 0; h < heads; ++h) {
    panel(grid_x + static_cast<double>(h % layout.across) * step_x,
          grid_y + static_cast<double>(h / layout.across) * step_y, small, fmt::format("head {}", h + 1),
          map_.heads[h]);
  }
  legend(svg::kMargin, std::round(height - svg::kMargin - 22));
  svg_ += "</svg>\n";
  return std::move(svg_);
}

}  // namespace

std::string attention_svg(const AttentionMap& map, std::string_view title) {
  const std::size_t size = map.source.size() * map.target.size();
  if (size == 0 || map.heads.empty()) {
    throw ShapeError(
        fmt::format("[attention_svg] needs words and heads, found {} source words, {} target words, {} heads",
                    map.source.size(), map.target.size(), map.heads.size()));
  }
  for (std::size_t h = 0; h < map.heads.size(); ++h) {
    if (map.heads[h].size() != size) {
      throw ShapeError(fmt::format("[attention_svg] head {} has {} weights, must have target x source = {} x {}", h + 1,
                                   map.heads[h].size(), map.target.size(), map.source.size()));
    }
  }
  return AttentionPicture(map, title).draw();
}

}  // namespace weft

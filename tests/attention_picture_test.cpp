#include "weft/train/attention_picture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "weft/core/error.h"
#include "xml.h"

using namespace weft;
using xml::count;
using xml::fault;

namespace {

AttentionMap make_map(std::size_t source, std::size_t target, std::size_t heads) {
  AttentionMap map;
  for (std::size_t i = 0; i < source; ++i) map.source.push_back("source" + std::to_string(i));
  for (std::size_t j = 0; j < target; ++j) map.target.push_back("target" + std::to_string(j));
  map.heads.assign(heads, std::vector<float>(source * target, 1.0f / static_cast<float>(source)));
  return map;
}

}  // namespace

TEST_CASE("the picture has a cell with a tooltip for every weight of the mean and of each head") {
  for (const auto& [source, target, heads] :
       {std::array<std::size_t, 3>{1, 1, 1}, {3, 5, 4}, {15, 13, 8}, {60, 60, 2}}) {
    const std::string svg = attention_svg(make_map(source, target, heads), "title");
    CHECK(fault(svg) == "");
    CHECK(count(svg, "<title>") == (heads + 1) * source * target);
    CHECK(count(svg, "class=\"cells\"") == heads + 1);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
  }
}

TEST_CASE("tooltips name source, target and weight, and the mean is the mean") {
  AttentionMap map = make_map(2, 1, 2);
  map.heads = {{1.0f, 0.0f}, {0.5f, 0.5f}};
  const std::string svg = attention_svg(map, "t");
  for (const char* const title : {"source0 → target0: 0.750", "source1 → target0: 0.250", "source0 → target0: 1.000",
                                  "source1 → target0: 0.000", "source0 → target0: 0.500"}) {
    CHECK(count(svg, "<title>" + std::string(title) + "</title>") == 1);
  }
}

TEST_CASE("more weight is darker") {
  AttentionMap map = make_map(5, 1, 1);
  map.heads = {{0.0f, 0.1f, 0.3f, 0.6f, 1.0f}};
  const std::string svg = attention_svg(map, "t");
  int before = 3 * 256;
  for (const char* const weight : {": 0.000<", ": 0.100<", ": 0.300<", ": 0.600<", ": 1.000<"}) {
    const std::size_t fill = svg.rfind("fill=\"#", svg.find(weight)) + 7;
    int sum = 0;
    for (std::size_t i = 0; i < 6; i += 2) sum += std::stoi(svg.substr(fill + i, 2), nullptr, 16);
    CHECK(sum < before);
    before = sum;
  }
}

TEST_CASE("words of any bytes keep the file well-formed") {
  AttentionMap map = make_map(5, 2, 1);
  map.source = {"<b>&\"'", std::string("a\0b\x01\x1b\n", 6), "\xff\xe9t\xe9", "\xed\xa0\x80", "日本語"};
  map.target = {"", "an extraordinarily long word that must be clipped"};
  const std::string svg = attention_svg(map, "</svg> \"&\" \x02");
  CHECK(fault(svg) == "");
  CHECK(svg.find("&lt;b&gt;&amp;&quot;&#39;") != std::string::npos);
  CHECK(svg.find("a&#x2400;b&#x2401;&#x241B;&#x240A;") != std::string::npos);
  CHECK(svg.find("&#xFFFD;&#xFFFD;t&#xFFFD;") != std::string::npos);
  CHECK(svg.find("日本語") != std::string::npos);
  CHECK(svg.find(">an extraordinaril…<") != std::string::npos);
  CHECK(svg.find("→ an extraordinarily long word that must be clipped:") != std::string::npos);
}

TEST_CASE("nothing is loaded or run") {
  const std::string svg = attention_svg(make_map(4, 4, 2), "title");
  CHECK(count(svg, "http") == 1);  // the namespace
  for (const char* const bad : {"href", "url(", "<script", "<style", "<image", "@import", "<!"}) {
    CHECK(svg.find(bad) == std::string::npos);
  }
}

TEST_CASE("weights that are no numbers are drawn as nothing") {
  AttentionMap map = make_map(2, 1, 1);
  map.heads = {{std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}};
  CHECK(fault(attention_svg(map, "t")) == "");
}

TEST_CASE("maps that do not fit are refused") {
  AttentionMap map = make_map(3, 2, 2);
  map.heads[1].pop_back();
  CHECK_THROWS_WITH_AS(attention_svg(map, "t"),
                       "[attention_svg] head 2 has 5 weights, must have target x source = 2 x 3", ShapeError);
  CHECK_THROWS_AS(attention_svg(make_map(0, 2, 1), "t"), ShapeError);
  CHECK_THROWS_AS(attention_svg(make_map(2, 0, 1), "t"), ShapeError);
  CHECK_THROWS_AS(attention_svg(make_map(2, 2, 0), "t"), ShapeError);
}

#include "weft/train/learning_curve.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "weft/core/error.h"
#include "xml.h"

using namespace weft;

namespace {

StepEntry step(Index number, double loss, double seconds) {
  StepEntry entry;
  entry.step = number;
  entry.loss = loss;
  entry.elapsed_seconds = seconds;
  return entry;
}

ValidationEntry validation(Index number, double loss, double bleu) {
  ValidationEntry entry;
  entry.step = number;
  entry.loss = loss;
  entry.bleu = bleu;
  entry.token_accuracy = bleu / 200;
  return entry;
}

CurveRun run(const std::string& name) {
  return {
      name,
      {{step(10, 4, 60), step(20, 3, 120), step(30, 2, 180)}, {validation(15, 3.5, 10), validation(30, 2.5, 21.25)}}};
}

}  // namespace

TEST_CASE("curves of a run") {
  const std::string svg = learning_curve_svg({run("runs/<a>")}, {.title = "a & b"});
  CHECK(xml::fault(svg) == "");
  CHECK(xml::count(svg, "<polyline") == 3);  // training, validation, BLEU
  CHECK(xml::count(svg, "<circle") == 4);
  CHECK(xml::count(svg, "runs/&lt;a&gt;: best BLEU 21.25<") == 1);
  CHECK(xml::count(svg, "a &amp; b") == 2);
  // Update 15 lies half way between those of 60 and 120 seconds.
  CHECK(xml::count(svg, "<title>1.5: 3.5</title>") == 1);
  CHECK(xml::count(svg, "<title>3: 21.25</title>") == 1);
  CHECK(xml::count(svg, "minutes of training") == 2);
}

TEST_CASE("every update has its place by time, before the first line of the log and after the last too") {
  CurveRun ends = run("ends");
  ends.entries.validations = {validation(0, 5, 11),  validation(5, 4, 12),  validation(10, 3, 13),
                              validation(12, 2, 14), validation(30, 1, 15), validation(99, 0.5, 16)};
  const std::string svg = learning_curve_svg({ends}, {});
  for (const char* place : {"0: 5", "0.5: 4", "1: 3", "1.2: 2", "3: 1", "3: 0.5"}) {
    CHECK(xml::count(svg, "<title>" + std::string(place) + "</title>") == 1);
  }
}

TEST_CASE("by updates, another metric, several runs") {
  const std::string svg = learning_curve_svg({run("one"), run("two")}, {"", "token_accuracy", false});
  CHECK(xml::fault(svg) == "");
  CHECK(xml::count(svg, "<polyline") == 6);
  CHECK(xml::count(svg, "<title>15: 3.5</title>") == 2);
  CHECK(xml::count(svg, "best token accuracy 10.62 %") == 2);
  CHECK(xml::count(svg, ">updates<") == 2);
  const std::string loss = learning_curve_svg({run("one")}, {"", "loss", false});
  CHECK(xml::count(loss, "best loss 2.5<") == 1);  // the least is best
}

TEST_CASE("long logs are thinned, and what is not finite is left out") {
  CurveRun long_run{"long", {}};
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (Index i = 1; i <= 10000; ++i) {
    long_run.entries.steps.push_back(step(i, i % 100 == 0 ? kNone : 5, static_cast<double>(i)));
  }
  long_run.entries.validations = {validation(100, kNone, kNone),
                                  validation(10000, std::numeric_limits<double>::infinity(), 3)};
  const std::string svg = learning_curve_svg({long_run}, {});
  CHECK(xml::fault(svg) == "");
  CHECK(svg.size() < 10000);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
  CHECK(xml::count(svg, "<circle") == 1);
}

TEST_CASE("a log without validations, a single entry") {
  CHECK(xml::fault(learning_curve_svg({{"a", {{step(1, 2, 1)}, {}}}}, {})) == "");
  CHECK(xml::fault(learning_curve_svg({{"a", {{}, {validation(1, 2, 1)}}}}, {})) == "");
}

TEST_CASE("values that are next to each other, tiny or huge have axes of a few ticks") {
  constexpr double kTiny = std::numeric_limits<double>::denorm_min(), kHuge = std::numeric_limits<double>::max();
  for (const double a : {0.0, kTiny, 1e-300, 2.5, 1e299, 1e300, kHuge}) {
    for (const double b : {a, std::nextafter(a, kHuge), a * (1 + 1e-12), -a, kHuge}) {
      CAPTURE(a);
      CAPTURE(b);
      for (const bool by_time : {true, false}) {
        const CurveRun pair{"a", {{step(1, a, a), step(2, b, b)}, {validation(1, a, a), validation(2, b, b)}}};
        const std::string svg = learning_curve_svg({pair}, {"", "bleu", by_time});
        CHECK(xml::fault(svg) == "");
        CHECK(xml::count(svg, "<path") < 40);
        CHECK(xml::count(svg, "<text") < 80);
        CHECK(svg.find("nan") == std::string::npos);
        CHECK(svg.find("inf") == std::string::npos);
      }
    }
  }
}

TEST_CASE("what cannot be drawn") {
  CHECK_THROWS_AS(learning_curve_svg({{"empty", {}}}, {}), DataError);
  CHECK_THROWS_AS(learning_curve_svg({run("a")}, {"", "nonsense", true}), ConfigError);
}

#include "cli/render_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>

namespace meganeura::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

void expect_ticks(double low, double high, int wanted, const std::vector<double>& expected) {
  const std::vector<double> ticks = nice_ticks(low, high, wanted);
  ASSERT_EQ(ticks.size(), expected.size());
  for (size_t i = 0; i < ticks.size(); ++i)
    EXPECT_NEAR(ticks[i], expected[i], 1e-9 * (1.0 + std::abs(expected[i])));
}

TEST(NiceTicks, CoverTheRangeInRoundSteps) {
  expect_ticks(0.0, 10.0, 5, {0, 2, 4, 6, 8, 10});
  expect_ticks(0.03, 2.31, 6, {0.0, 0.5, 1.0, 1.5, 2.0, 2.5});
  expect_ticks(-7.0, 12.0, 4, {-10, -5, 0, 5, 10, 15});
}

TEST(NiceTicks, AlwaysHaveTwoDifferentEnds) {
  const std::pair<double, double> ranges[] = {{0, 0},
                                              {5, 5},
                                              {-3, -3},
                                              {1, 0},
                                              {kInfinity, -kInfinity},
                                              {std::nan(""), 1},
                                              {1e-300, 2e-300},
                                              {-1e300, 1e300},
                                              {1e9, 1e9 + 1e-3}};
  for (const auto& [low, high] : ranges) {
    const std::vector<double> ticks = nice_ticks(low, high, 6);
    ASSERT_GE(ticks.size(), 2u) << low << " to " << high;
    EXPECT_LE(ticks.size(), 16u);
    EXPECT_LT(ticks.front(), ticks.back());
    if (std::isfinite(low) && std::isfinite(high) && low <= high) {
      EXPECT_LE(ticks.front(), low);
      EXPECT_GE(ticks.back(), high);
    }
  }
}

Chart curves() {
  Chart chart{"Training", "step", "loss", "accuracy (%)", {}};
  chart.series.push_back({"loss", {{0, 2.3}, {100, 0.5}, {200, 0.1}}, false});
  chart.series.push_back({"accuracy", {{0, 10.0}, {200, 97.5}}, true});
  return chart;
}

TEST(ChartSvg, DrawsSeriesAxesAndLegend) {
  const std::string svg = chart_svg(curves());
  EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0u);
  EXPECT_EQ(count(svg, "<path "), 2u);
  EXPECT_EQ(count(svg, "<circle "), 5u);
  EXPECT_EQ(count(svg, "</svg>"), 1u);
  for (const char* text : {">Training<", ">step<", ">loss<", ">accuracy (%)<", ">accuracy<",
                           ">2.5<", ">100<", ">200<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  // The first point: the left edge, and 2.3 of 0 to 2.5 from the bottom.
  EXPECT_NE(svg.find("d=\"M74.0 78.9L"), std::string::npos) << svg;
}

TEST(ChartSvg, HasNoRightAxisWithoutASeriesForIt) {
  Chart chart = curves();
  chart.series.pop_back();
  EXPECT_EQ(chart_svg(chart).find("accuracy"), std::string::npos);
}

TEST(ChartSvg, BreaksTheLineWhereAValueIsMissing) {
  Chart chart = curves();
  chart.series = {{"loss", {{0, 1}, {1, 2}, {2, std::nan("")}, {3, 1}, {4, kInfinity}, {5, 3}}}};
  const std::string svg = chart_svg(chart);
  const size_t start = svg.find("<path ");
  const std::string path = svg.substr(start, svg.find('>', start) - start);
  EXPECT_EQ(count(path, "M"), 3u) << path;
  EXPECT_EQ(count(path, "L"), 1u) << path;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(ChartSvg, IsWholeWithoutAnyPoint) {
  const std::string svg = chart_svg({"Empty", "x", "y", "", {{"none", {}}}});
  EXPECT_EQ(count(svg, "<path "), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(ChartSvg, EscapesText) {
  const std::string svg = chart_svg({"a < b & \"c\" > d\x01", "x", "y", "", {}});
  EXPECT_NE(svg.find(">a &lt; b &amp; &quot;c&quot; &gt; d<"), std::string::npos) << svg;
}

TEST(ChartSvg, IsTheSameEveryTime) { EXPECT_EQ(chart_svg(curves()), chart_svg(curves())); }

}  // namespace
}  // namespace meganeura::cli

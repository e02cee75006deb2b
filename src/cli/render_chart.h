// Curves as SVG.
#pragma once

#include <string>
#include <vector>

namespace meganeura::cli {

struct ChartPoint {
  double x = 0.0;
  double y = 0.0;
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // points that are not finite interrupt the line
  bool right_axis = false;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string left_label;
  std::string right_label;  // used when a series stands on the right axis
  std::vector<ChartSeries> series;
};

// Round values that cover [low, high]: about `wanted` of them, apart by 1, 2 or 5 times a power of
// ten. Bounds that are equal or not finite are widened first.
std::vector<double> nice_ticks(double low, double high, int wanted);

// A self-contained SVG document of 800 x 480 units with axes, grid, ticks and legend.
std::string chart_svg(const Chart& chart);

}  // namespace meganeura::cli

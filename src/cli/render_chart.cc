#include "cli/render_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace meganeura::cli {

namespace {

constexpr double kWidth = 800.0;
constexpr double kHeight = 480.0;
constexpr double kLeft = 74.0;
constexpr double kTop = 52.0;
constexpr double kBottom = kHeight - 92.0;
constexpr int kXTicks = 8;
constexpr int kYTicks = 6;

// Colours that people with a colour vision deficiency can tell apart (Okabe and Ito).
constexpr std::array<std::string_view, 6> kColors = {"#0072b2", "#d55e00", "#009e73",
                                                     "#cc79a7", "#e69f00", "#56b4e9"};

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML allows no other control characters, not even escaped.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n') out += c;
    }
  }
  return out;
}

bool finite(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// A linear map from values to coordinates, with its ticks.
class Axis {
 public:
  Axis(double low, double high, int wanted, double from, double to)
      : ticks_(nice_ticks(low, high, wanted)), from_(from), to_(to) {}

  double place(double value) const {
    const double fraction = (value - ticks_.front()) / (ticks_.back() - ticks_.front());
    return from_ + fraction * (to_ - from_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  std::vector<double> ticks_;
  double from_;
  double to_;
};

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Draws into the text of the document.
class Canvas {
 public:
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    text_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)"
                         "\n",
                         x1, y1, x2, y2, style);
  }
  void label(double x, double y, std::string_view anchor, std::string_view text,
             std::string_view style, std::string_view extra = "") {
    text_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}"{}>{}</text>)"
                         "\n",
                         x, y, anchor, style, extra, escape(text));
  }
  void raw(std::string_view text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string tick_text(double value) {
  // Adding 0 turns -0 into 0.
  return fmt::format("{:g}", value + 0.0);
}

void draw_vertical_axis(Canvas& canvas, const Axis& axis, double x, bool right, bool grid,
                        double grid_end) {
  for (double tick : axis.ticks()) {
    const double y = axis.place(tick);
    if (grid) canvas.line(x, y, grid_end, y, "grid");
    canvas.line(x, y, right ? x + 5 : x - 5, y, "axis");
    canvas.label(right ? x + 9 : x - 9, y + 4, right ? "start" : "end", tick_text(tick), "tick");
  }
  canvas.line(x, kTop, x, kBottom, "axis");
}

void draw_series(Canvas& canvas, const ChartSeries& series, std::string_view color, const Axis& x,
                 const Axis& y) {
  std::string path;
  bool pen_down = false;
  size_t drawn = 0;
  for (const ChartPoint& point : series.points) {
    if (!finite(point)) {
      pen_down = false;
      continue;
    }
    path +=
        fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x.place(point.x), y.place(point.y));
    pen_down = true;
    ++drawn;
  }
  if (path.empty()) return;
  canvas.raw(fmt::format(R"(<path d="{}" class="curve" stroke="{}"{}/>)"
                         "\n",
                         path, color, series.right_axis ? R"( stroke-dasharray="7 4")" : ""));
  // Few points deserve to be seen one by one.
  constexpr size_t kMostMarks = 24;
  if (drawn > kMostMarks) return;
  for (const ChartPoint& point : series.points) {
    if (!finite(point)) continue;
    canvas.raw(fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.2" fill="{}"/>)"
                           "\n",
                           x.place(point.x), y.place(point.y), color));
  }
}

void draw_legend(Canvas& canvas, const Chart& chart) {
  double x = kLeft;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    canvas.raw(fmt::format(
        R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="curve" stroke="{}"{}/>)"
        "\n",
        x, kHeight - 22, x + 26, kHeight - 22, kColors[i % kColors.size()],
        series.right_axis ? R"( stroke-dasharray="7 4")" : ""));
    canvas.label(x + 33, kHeight - 18, "start", series.name, "legend");
    // About seven units a letter at this size.
    x += 33 + 7.2 * static_cast<double>(series.name.size()) + 26;
  }
}

constexpr std::string_view kStyle = R"(<style>
text { font-family: system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; fill: #333333; }
.title { font-size: 17px; font-weight: 600; }
.name { font-size: 13px; fill: #555555; }
.tick { font-size: 12px; fill: #555555; }
.legend { font-size: 13px; }
.axis { stroke: #888888; stroke-width: 1; }
.grid { stroke: #e6e6e6; stroke-width: 1; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
</style>
)";

}  // namespace

std::vector<double> nice_ticks(double low, double high, int wanted) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    low = 0.0;
    high = 1.0;
  }
  if (!(high - low > std::abs(high) * 1e-9)) {
    const double margin = std::max(std::abs(high) * 0.5, 0.5);
    low -= margin;
    high += margin;
  }
  const double rough = high / std::max(1, wanted) - low / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double scaled = rough / power;
  const double step = power * (scaled <= 1.0   ? 1.0
                               : scaled <= 2.0 ? 2.0
                               : scaled <= 5.0 ? 5.0
                                               : 10.0);
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  std::vector<double> ticks;
  for (double i = first; i <= last; i += 1.0) ticks.push_back(i * step);
  return ticks;
}

std::string chart_svg(const Chart& chart) {
  Bounds x_bounds;
  Bounds bounds[2];  // left, right
  bool has_right = false;
  for (const ChartSeries& series : chart.series) {
    has_right = has_right || series.right_axis;
    for (const ChartPoint& point : series.points) {
      if (!finite(point)) continue;
      x_bounds.add(point.x);
      bounds[series.right_axis ? 1 : 0].add(point.y);
    }
  }
  const double right = kWidth - (has_right ? 78.0 : 30.0);
  const Axis x(x_bounds.low, x_bounds.high, kXTicks, kLeft, right);
  const Axis y[2] = {Axis(bounds[0].low, bounds[0].high, kYTicks, kBottom, kTop),
                     Axis(bounds[1].low, bounds[1].high, kYTicks, kBottom, kTop)};

  Canvas canvas;
  canvas.raw(fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" )"
                         R"(width="{0:g}" height="{1:g}" role="img">)"
                         "\n",
                         kWidth, kHeight));
  canvas.raw(kStyle);
  canvas.raw(R"(<rect width="100%" height="100%" fill="#ffffff"/>)"
             "\n");
  canvas.label((kLeft + right) / 2, 28, "middle", chart.title, "title");
  draw_vertical_axis(canvas, y[0], kLeft, false, true, right);
  if (has_right) draw_vertical_axis(canvas, y[1], right, true, false, right);
  for (double tick : x.ticks()) {
    canvas.line(x.place(tick), kBottom, x.place(tick), kBottom + 5, "axis");
    canvas.label(x.place(tick), kBottom + 20, "middle", tick_text(tick), "tick");
  }
  canvas.line(kLeft, kBottom, right, kBottom, "axis");
  const double middle = (kTop + kBottom) / 2;
  canvas.label((kLeft + right) / 2, kBottom + 42, "middle", chart.x_label, "name");
  canvas.label(20, middle, "middle", chart.left_label, "name",
               fmt::format(R"x( transform="rotate(-90 20 {:g})")x", middle));
  if (has_right)
    canvas.label(kWidth - 18, middle, "middle", chart.right_label, "name",
                 fmt::format(R"x( transform="rotate(90 {:g} {:g})")x", kWidth - 18, middle));
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    draw_series(canvas, series, kColors[i % kColors.size()], x, y[series.right_axis ? 1 : 0]);
  }
  draw_legend(canvas, chart);
  canvas.raw("</svg>\n");
  return canvas.take();
}

}  // namespace meganeura::cli

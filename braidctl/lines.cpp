// SPDX-License-Identifier: Apache-2.0
// Lines over an axis of values.
#include <algorithm>

#include <fmt/format.h>

#include "braidctl/panel.h"

namespace braid {
namespace {

constexpr size_t kMarkedPointsMax = 64;  // of one line: more would hide it
constexpr double kPlainLine = 1.5;
constexpr size_t kRoundXValues = 8;

// Lines that coincide stay visible: each is thinner than those below it.
constexpr double kWidestLine = 4.5;
constexpr double kThinnestLine = 1.5;

bool is_marked(const Figure::Panel& panel) {
  return std::all_of(panel.series.begin(), panel.series.end(), [](const Figure::Series& series) {
    return series.points.size() <= kMarkedPointsMax;
  });
}

Axis x_axis(const Figure::Panel& panel, const PanelFrame& frame) {
  Axis axis;
  const double margin = is_marked(panel) ? 14 : 0;
  axis.low_pixel = frame.left + margin;
  axis.high_pixel = frame.right - margin;
  axis.is_logarithmic = panel.x_is_logarithmic;
  std::vector<double> values;
  for (const Figure::Series& series : panel.series) {
    for (const Figure::Point& point : series.points) values.push_back(point.x);
  }
  if (!axis.is_logarithmic) values.push_back(0);
  if (values.empty()) values.push_back(1);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  axis.low = *low;
  axis.high = *high;
  if (axis.low < axis.high) return axis;
  axis.low = axis.is_logarithmic ? axis.low / 2 : axis.low;
  axis.high = axis.is_logarithmic ? axis.high * 2 : axis.high + 1;
  return axis;
}

void draw_x_axis(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame, const Axis& x) {
  for (const double tick : panel.x_ticks.empty() ? x.ticks(kRoundXValues) : panel.x_ticks) {
    const double pixel = x.pixel(tick);
    svg.line(pixel, frame.bottom, pixel, frame.bottom + 5, {});
    svg.text(pixel, frame.bottom + 20, format_number(tick), {.anchor = Svg::Anchor::Middle});
  }
  svg.line(frame.left, frame.bottom, frame.right, frame.bottom, {});
  svg.line(frame.left, frame.top, frame.left, frame.bottom, {});
}

}  // namespace

void draw_lines(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
                const SeriesColours& colours, const Axis& y) {
  const Axis x = x_axis(panel, frame);
  draw_x_axis(svg, panel, frame, x);
  const bool marked = is_marked(panel);
  const auto last = static_cast<double>(std::max<size_t>(2, panel.series.size()) - 1);
  draw_limit(svg, panel, frame, y);
  for (size_t s = 0; s < panel.series.size(); ++s) {
    const Figure::Series& series = panel.series[s];
    std::vector<std::pair<double, double>> points;
    for (const Figure::Point& point : series.points)
      points.emplace_back(x.pixel(point.x), y.pixel(point.y));
    if (series.is_reference) {
      svg.polyline(points, kReferenceStroke);
      continue;
    }
    const double share = static_cast<double>(s) / last;
    const double width = marked ? kWidestLine - share * (kWidestLine - kThinnestLine) : kPlainLine;
    svg.polyline(points, {colours[series.name], width});
    if (!marked) continue;
    for (size_t i = 0; i < points.size(); ++i) {
      const Figure::Point& point = series.points[i];
      const std::string hint = point.hint.empty()
                                   ? fmt::format("{}: {}, {}", series.name, format_number(point.x),
                                                 format_number(point.y))
                                   : point.hint;
      svg.circle(points[i].first, points[i].second, width / 2 + 1.8, colours[series.name], hint);
    }
  }
}

}  // namespace braid

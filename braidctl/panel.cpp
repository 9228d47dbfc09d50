// SPDX-License-Identifier: Apache-2.0
#include "braidctl/panel.h"

#include <algorithm>

namespace braid {
namespace {

constexpr double kHeadroom = 1.12;  // above the highest bar, for its label
constexpr double kLogarithmicMargin = 1.15;
constexpr size_t kRoundValues = 6;

// The highest thing in each place: of stacked bars that is a sum.
std::vector<double> heights(const Figure::Panel& panel) {
  std::vector<double> found;
  if (panel.kind == Figure::Kind::StackedBars) {
    found.resize(panel.groups.size());
    for (const Figure::Series& series : panel.series) {
      for (const Figure::Point& point : series.points)
        found[static_cast<size_t>(point.x)] += point.y;
    }
  } else {
    for (const Figure::Series& series : panel.series) {
      for (const Figure::Point& point : series.points) found.push_back(point.y);
    }
  }
  if (panel.limit) found.push_back(panel.limit->value);
  return found;
}

Axis value_axis(const Figure::Panel& panel, const PanelFrame& frame) {
  Axis axis;
  axis.low_pixel = frame.bottom;
  axis.high_pixel = frame.top;
  const std::vector<double> values = heights(panel);
  if (values.empty()) return axis;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  axis.is_logarithmic = panel.y_is_logarithmic;
  if (axis.is_logarithmic) {
    axis.low = *low / kLogarithmicMargin;
    axis.high = *high * kLogarithmicMargin;
  } else {
    axis.low = std::min(0.0, *low * kHeadroom);
    axis.high = std::max(0.0, *high * kHeadroom);
    if (axis.low == axis.high) axis.high = 1;
  }
  return axis;
}

void draw_grid(Svg& svg, const PanelFrame& frame, const Axis& y) {
  for (const double tick : y.ticks(kRoundValues)) {
    const double pixel = y.pixel(tick);
    svg.line(frame.left, pixel, frame.right, pixel, {.colour = kGrid});
    svg.text(frame.left - 8, pixel + 4, format_number(tick), {.anchor = Svg::Anchor::End});
  }
}

void draw_titles(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame) {
  const double title = frame.left - kPanelRoomLeft + kPanelGap;
  svg.text(title, frame.title, panel.title, {.size = 13, .is_bold = true});
  svg.text(title, frame.title + kPanelNoteHeight, panel.note, {.fill = kMuted});
  svg.text((frame.left + frame.right) / 2, frame.bottom + 42, panel.x_title,
           {.size = 13, .anchor = Svg::Anchor::Middle});
}

}  // namespace

SeriesColours::SeriesColours(const Figure& figure) {
  for (const Figure::Panel& panel : figure.panels) {
    for (const Figure::Series& series : panel.series) {
      if (series.is_reference) continue;
      if (std::find(names_.begin(), names_.end(), series.name) == names_.end())
        names_.push_back(series.name);
    }
  }
}

std::string_view SeriesColours::operator[](std::string_view name) const {
  const auto place = std::find(names_.begin(), names_.end(), name);
  return series_colour(static_cast<size_t>(place - names_.begin()));
}

void draw_panel(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
                const SeriesColours& colours) {
  draw_titles(svg, panel, frame);
  if (panel.kind == Figure::Kind::Spans) {
    draw_spans(svg, panel, frame, colours);
    return;
  }
  const Axis y = value_axis(panel, frame);
  draw_grid(svg, frame, y);
  if (panel.kind == Figure::Kind::Lines) {
    draw_lines(svg, panel, frame, colours, y);
  } else {
    draw_bars(svg, panel, frame, colours, y);
  }
}

void draw_limit(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame, const Axis& y) {
  if (!panel.limit) return;
  const double pixel = y.pixel(panel.limit->value);
  svg.line(frame.left, pixel, frame.right, pixel, {.width = 1.2, .dash = "6 4"});
  // Its text is at the end where the bars are lower.
  double first = 0;
  double last = 0;
  for (const Figure::Series& series : panel.series) {
    if (series.points.empty()) continue;
    first = std::max(first, series.points.front().y);
    last = std::max(last, series.points.back().y);
  }
  const bool is_left = first <= last;
  svg.text(is_left ? frame.left + 4 : frame.right - 4, pixel - 6, panel.limit->text,
           {.anchor = is_left ? Svg::Anchor::Start : Svg::Anchor::End, .has_halo = true});
}

double text_width(std::string_view text, double size) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not within one of UTF-8
  });
  return 0.62 * size * static_cast<double>(characters);
}

}  // namespace braid

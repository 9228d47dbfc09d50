// SPDX-License-Identifier: Apache-2.0
// Groups of bars beside each other, or of bars that stand on each other.
#include <algorithm>

#include <fmt/format.h>

#include "braidctl/panel.h"

namespace braid {
namespace {

constexpr double kBarWidthMax = 64;
constexpr double kBarShare = 0.8;  // of a group's room; the rest is between groups
constexpr double kBarGap = 3;
constexpr double kLabelSize = 11;
constexpr double kLabelHeight = 16;

// Narrower than most bars; the hint has more digits.
std::string short_number(double value) {
  if (value > 0 && value < 0.01) return "<0.01";
  return fmt::format("{:.{}f}", value, value > 0 && value < 10 ? 2 : 0);
}

class BarsDrawing {
 public:
  BarsDrawing(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
              const SeriesColours& colours, const Axis& y)
      : svg_(svg), panel_(panel), frame_(frame), colours_(colours), y_(y) {
    group_width_ =
        (frame.right - frame.left) / static_cast<double>(std::max<size_t>(1, panel.groups.size()));
    is_stacked_ = panel.kind == Figure::Kind::StackedBars;
    const size_t beside = is_stacked_ ? 1 : std::max<size_t>(1, panel.series.size());
    bar_width_ = std::min(kBarWidthMax, group_width_ * kBarShare / static_cast<double>(beside));
  }

  void draw() {
    for (size_t group = 0; group < panel_.groups.size(); ++group) {
      svg_.text(middle(group), frame_.bottom + 20, panel_.groups[group],
                {.anchor = Svg::Anchor::Middle});
    }
    if (is_stacked_) {
      draw_stacks();
    } else {
      draw_beside();
    }
    draw_limit(svg_, panel_, frame_, y_);
    for (const Label& one : labels_) svg_.text(one.x, one.y, one.text, one.style);
    svg_.line(frame_.left, frame_.bottom, frame_.right, frame_.bottom, {});
  }

 private:
  struct Label {
    double x;
    double y;
    std::string text;
    Svg::Text style;
  };

  double middle(size_t group) const {
    return frame_.left + group_width_ * (static_cast<double>(group) + 0.5);
  }

  void draw_beside() {
    const auto count = static_cast<double>(panel_.series.size());
    for (size_t s = 0; s < panel_.series.size(); ++s) {
      for (const Figure::Point& point : panel_.series[s].points) {
        const double x = middle(static_cast<size_t>(point.x)) +
                         (static_cast<double>(s) - count / 2) * bar_width_;
        draw_bar(panel_.series[s], point, x, 0);
        label(x + bar_width_ / 2, y_.pixel(point.y) - 5, short_number(point.y), {});
      }
    }
  }

  void draw_stacks() {
    std::vector<double> tops(panel_.groups.size(), 0);
    for (const Figure::Series& series : panel_.series) {
      for (const Figure::Point& point : series.points) {
        const auto group = static_cast<size_t>(point.x);
        draw_bar(series, point, middle(group) - bar_width_ / 2, tops[group]);
        const double height = y_.pixel(tops[group]) - y_.pixel(tops[group] + point.y);
        if (height >= kLabelHeight) {
          label(middle(group), y_.pixel(tops[group] + point.y / 2) + 4, short_number(point.y),
                {.fill = kPaper});
        }
        tops[group] += point.y;
      }
    }
    for (size_t group = 0; group < tops.size(); ++group)
      label(middle(group), y_.pixel(tops[group]) - 5, short_number(tops[group]), {.is_bold = true});
  }

  void draw_bar(const Figure::Series& series, const Figure::Point& point, double x, double from) {
    const double top = y_.pixel(from + point.y);
    const std::string hint =
        !point.hint.empty()
            ? point.hint
            : fmt::format("{}, {}: {}", series.name, panel_.groups[static_cast<size_t>(point.x)],
                          format_number(point.y));
    svg_.rectangle(x + kBarGap / 2, top, std::max(bar_width_ - kBarGap, 1.0), y_.pixel(from) - top,
                   colours_[series.name], 1, hint);
  }

  // Only where it fits.
  void label(double x, double y, const std::string& text, Svg::Text style) {
    if (text_width(text, kLabelSize) > bar_width_ + kBarGap) return;
    style.size = kLabelSize;
    style.anchor = Svg::Anchor::Middle;
    style.has_halo = style.fill != kPaper;
    labels_.push_back({x, y, text, style});
  }

  Svg& svg_;
  const Figure::Panel& panel_;
  const PanelFrame& frame_;
  const SeriesColours& colours_;
  const Axis& y_;
  double group_width_ = 0;
  double bar_width_ = 0;
  bool is_stacked_ = false;
  std::vector<Label> labels_;
};

}  // namespace

void draw_bars(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
               const SeriesColours& colours, const Axis& y) {
  BarsDrawing(svg, panel, frame, colours, y).draw();
}

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// Spans of time in lanes, as on a timeline.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "braidctl/panel.h"

namespace braid {
namespace {

constexpr double kLaneNameSize = 11;
constexpr double kLaneNameHeight = 17;  // above its spans
constexpr double kLaneGap = 8;          // below them
constexpr double kRowHeightMax = 24;
constexpr double kRowGap = 1;
constexpr double kSpanTextSize = 11;
constexpr double kSpanTextHeight = 13;
constexpr double kSpanWidthMin = 0.5;
constexpr size_t kRoundTimes = 10;

// A lane has as many rows as it needs for spans that overlap.
class SpansDrawing {
 public:
  SpansDrawing(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
               const SeriesColours& colours)
      : svg_(svg), panel_(panel), frame_(frame), colours_(colours), lanes_(panel.groups.size()) {
    x_.low_pixel = frame.left;
    x_.high_pixel = frame.right;
    x_.high = panel.x_end;
    for (const Figure::Series& series : panel.series) {
      for (const Figure::Span& span : series.spans) {
        lanes_[span.lane].spans.push_back({&series, &span, 0});
        x_.high = std::max(x_.high, span.end);
      }
    }
    if (x_.high <= 0) x_.high = 1;
    for (Lane& lane : lanes_) lane.rows = std::max<size_t>(1, give_rows(lane.spans));
    share_height(frame.bottom - frame.top);
  }

  void draw() {
    draw_axis();
    double top = frame_.top;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      svg_.text(frame_.left + 4, top + kLaneNameHeight - 5, panel_.groups[i],
                {.size = kLaneNameSize, .fill = kMuted, .has_halo = true});
      top += kLaneNameHeight;
      for (const Placed& placed : lanes_[i].spans)
        draw_span(placed, top + lanes_[i].row_height * static_cast<double>(placed.row),
                  lanes_[i].row_height);
      top += lanes_[i].row_height * static_cast<double>(lanes_[i].rows) + kLaneGap;
    }
  }

 private:
  struct Placed {
    const Figure::Series* series = nullptr;
    const Figure::Span* span = nullptr;
    size_t row = 0;
  };
  struct Lane {
    std::vector<Placed> spans;
    size_t rows = 1;
    double row_height = kRowHeightMax;
  };

  // Each span goes to the first row that is free. How many rows there are.
  static size_t give_rows(std::vector<Placed>& spans) {
    std::ranges::stable_sort(spans, {}, [](const Placed& placed) { return placed.span->begin; });
    std::vector<double> ends;
    for (Placed& placed : spans) {
      const auto row =
          std::ranges::find_if(ends, [&placed](double end) { return end <= placed.span->begin; });
      placed.row = static_cast<size_t>(row - ends.begin());
      if (row == ends.end()) {
        ends.push_back(placed.span->end);
      } else {
        *row = placed.span->end;
      }
    }
    return ends.size();
  }

  // Lanes of few rows have high ones; the others share what is left.
  void share_height(double height) {
    std::vector<Lane*> lanes;
    for (Lane& lane : lanes_) lanes.push_back(&lane);
    std::ranges::stable_sort(lanes, {}, [](const Lane* lane) { return lane->rows; });
    auto left = static_cast<double>(lanes.size());
    height -= left * (kLaneNameHeight + kLaneGap);
    for (Lane* lane : lanes) {
      const auto rows = static_cast<double>(lane->rows);
      lane->row_height = std::min(kRowHeightMax, std::max(height, 0.0) / left / rows);
      height -= lane->row_height * rows;
      --left;
    }
  }

  void draw_axis() {
    for (const double tick : x_.ticks(kRoundTimes)) {
      const double pixel = x_.pixel(tick);
      svg_.line(pixel, frame_.top, pixel, frame_.bottom, {.colour = kGrid});
      svg_.text(pixel, frame_.bottom + 18, format_number(tick), {.anchor = Svg::Anchor::Middle});
    }
    svg_.line(frame_.left, frame_.bottom, frame_.right, frame_.bottom, {});
  }

  void draw_span(const Placed& placed, double top, double height) {
    const Figure::Span& span = *placed.span;
    const double x = x_.pixel(span.begin);
    const double width = std::max(x_.pixel(span.end) - x, kSpanWidthMin);
    const std::string hint = fmt::format("{}{}: {} to {}", placed.series->name,
                                         span.text.empty() ? "" : ", " + span.text,
                                         format_number(span.begin), format_number(span.end));
    const double gap = height > 3 ? kRowGap : 0;
    svg_.rectangle(x, top, width, height - gap, colours_[placed.series->name], 1, hint);
    if (height < kSpanTextHeight || text_width(span.text, kSpanTextSize) > width) return;
    svg_.text(x + width / 2, top + height / 2 + 4, span.text,
              {.size = kSpanTextSize, .anchor = Svg::Anchor::Middle, .fill = kPaper});
  }

  Svg& svg_;
  const Figure::Panel& panel_;
  const PanelFrame& frame_;
  const SeriesColours& colours_;
  std::vector<Lane> lanes_;
  Axis x_;
};

}  // namespace

void draw_spans(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
                const SeriesColours& colours) {
  SpansDrawing(svg, panel, frame, colours).draw();
}

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "braidctl/axis.h"
#include "braidctl/figure.h"
#include "braidctl/svg.h"

namespace braid {

// Which colour a name has: those of the palette in the order in which the names come.
class SeriesColours {
 public:
  explicit SeriesColours(const Figure& figure);

  // In that order, without the references.
  const std::vector<std::string_view>& names() const { return names_; }
  std::string_view operator[](std::string_view name) const;

 private:
  std::vector<std::string_view> names_;
};

// Where a panel's data goes: pixels. Titles and labels are around it.
struct PanelFrame {
  double title = 0;  // where the panel's title stands; its note is below it
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// Room that a panel needs around its frame.
inline constexpr double kPanelRoomLeft = 64;
inline constexpr double kPanelGap = 12;  // of that, to the panel on the left
inline constexpr double kPanelRoomTop = 34;
inline constexpr double kPanelNoteHeight = 18;
inline constexpr double kPanelRoomBottom = 36;
inline constexpr double kPanelXTitleHeight = 18;

void draw_panel(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
                const SeriesColours& colours);

// What draw_panel() draws within the frame. Bars draw the limit below their labels.
void draw_bars(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
               const SeriesColours& colours, const Axis& y);
void draw_lines(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
                const SeriesColours& colours, const Axis& y);
void draw_spans(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame,
                const SeriesColours& colours);

void draw_limit(Svg& svg, const Figure::Panel& panel, const PanelFrame& frame, const Axis& y);

// Pixels, about, and rather more than less.
double text_width(std::string_view text, double size);

// A reference's line, also in the legend.
inline constexpr Svg::Stroke kReferenceStroke = {kMuted, 1.2, "1 4"};

}  // namespace braid

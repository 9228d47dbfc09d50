// SPDX-License-Identifier: Apache-2.0
#include "braidctl/figure.h"

#include <algorithm>

#include "braidctl/panel.h"

namespace braid {
namespace {

constexpr double kMargin = 20;
constexpr double kTitleHeight = 38;
constexpr double kNoteHeight = 20;
constexpr double kHeadingGap = 8;  // below it
constexpr double kLegendPitch = 24;
constexpr double kLegendTextSize = 13;
constexpr double kSwatch = 14;

// A name's place in the legend.
struct Entry {
  std::string_view name;
  bool is_reference = false;
  double x = 0;
  double row = 0;
};

class FigureDrawing {
 public:
  explicit FigureDrawing(const Figure& figure)
      : figure_(figure),
        colours_(figure),
        width_(kMargin + figure.columns * (kPanelRoomLeft + figure.panel_width) + kMargin),
        notes_top_(figure.title.empty() ? 0 : kTitleHeight),
        panels_top_(notes_top_ + kNoteHeight * static_cast<double>(figure.notes.size()) +
                    kHeadingGap),
        rows_((figure.panels.size() + figure.columns - 1) / figure.columns),
        panels_bottom_(panels_top_ + static_cast<double>(rows_) * row_height()),
        legend_(make_legend()),
        svg_(width_, panels_bottom_ + legend_height(),
             figure.title.empty() && !figure.panels.empty() ? figure.panels[0].title
                                                            : figure.title) {}

  std::string draw() && {
    if (!figure_.title.empty())
      svg_.text(kMargin, 30, figure_.title, {.size = 18, .is_bold = true});
    double y = notes_top_ + 14;
    for (const std::string& note : figure_.notes) {
      svg_.text(kMargin, y, note, {.size = 13, .fill = kMuted});
      y += kNoteHeight;
    }
    for (size_t i = 0; i < figure_.panels.size(); ++i)
      draw_panel(svg_, figure_.panels[i], frame(i), colours_);
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  // All panels have room for what one of them has.
  bool has_any(std::string Figure::Panel::*text) const {
    return std::any_of(figure_.panels.begin(), figure_.panels.end(),
                       [text](const Figure::Panel& panel) { return !(panel.*text).empty(); });
  }
  double room_top() const {
    return kPanelRoomTop + (has_any(&Figure::Panel::note) ? kPanelNoteHeight : 0);
  }
  double room_bottom() const {
    return kPanelRoomBottom + (has_any(&Figure::Panel::x_title) ? kPanelXTitleHeight : 0);
  }
  double row_height() const { return room_top() + figure_.panel_height + room_bottom(); }

  PanelFrame frame(size_t panel) const {
    const size_t row_number = panel / figure_.columns;
    const auto row = static_cast<double>(row_number);
    const auto column = static_cast<double>(panel % figure_.columns);
    PanelFrame frame;
    frame.left =
        kMargin + column * (kPanelRoomLeft + figure_.panel_width) + kPanelRoomLeft - kPanelGap;
    frame.right = frame.left + figure_.panel_width;
    frame.title = panels_top_ + row * row_height() + kPanelNoteHeight;
    frame.top = panels_top_ + row * row_height() + room_top();
    frame.bottom = frame.top + figure_.panel_height;
    return frame;
  }

  // From left to right, in as many rows as they need. One name needs no legend.
  std::vector<Entry> make_legend() const {
    std::vector<Entry> entries;
    for (const std::string_view name : colours_.names()) entries.push_back({name});
    for (const Figure::Panel& panel : figure_.panels) {
      for (const Figure::Series& series : panel.series) {
        if (series.is_reference) entries.push_back({series.name, true});
      }
    }
    if (entries.size() < 2) return {};
    double x = kMargin;
    double row = 0;
    for (Entry& entry : entries) {
      const double needed = kSwatch + 36 + text_width(entry.name, kLegendTextSize);
      if (x > kMargin && x + needed > width_) {
        x = kMargin;
        ++row;
      }
      entry.x = x;
      entry.row = row;
      x += needed;
    }
    return entries;
  }
  double legend_height() const {
    return legend_.empty() ? 0 : kLegendPitch * (legend_.back().row + 1) + 8;
  }

  void draw_legend() {
    for (const Entry& entry : legend_) {
      const double y = panels_bottom_ + kLegendPitch * entry.row;
      if (entry.is_reference) {
        svg_.line(entry.x, y + kSwatch / 2, entry.x + kSwatch + 4, y + kSwatch / 2,
                  kReferenceStroke);
      } else {
        svg_.rectangle(entry.x, y, kSwatch, kSwatch, colours_[entry.name]);
      }
      svg_.text(entry.x + kSwatch + 8, y + kSwatch - 2, entry.name, {.size = kLegendTextSize});
    }
  }

  const Figure& figure_;
  const SeriesColours colours_;
  const double width_;
  const double notes_top_;
  const double panels_top_;
  const size_t rows_;
  const double panels_bottom_;
  const std::vector<Entry> legend_;
  Svg svg_;
};

}  // namespace

std::string figure_svg(const Figure& figure) { return FigureDrawing(figure).draw(); }

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

// A chart: panels of bars, lines or spans in rows, and one legend for all. What has one name has
// one colour in all panels.
struct Figure {
  enum class Kind : uint8_t { Bars, StackedBars, Lines, Spans };
  struct Point {
    double x = 0;  // of a bar: the place of its group
    double y = 0;
    std::string hint = {};  // empty: name and values
  };
  struct Span {  // from `begin` to `end` on the axis to the right
    size_t lane = 0;
    double begin = 0;
    double end = 0;
    std::string text = {};  // within it where there is room
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
    std::vector<Span> spans = {};
    bool is_reference = false;  // what the others are held against: dotted, without points
  };
  struct Limit {  // a line across
    double value = 0;
    std::string text;
  };
  struct Panel {
    std::string title;  // what is drawn upwards, and its unit
    std::string note;   // below the title
    Kind kind = Kind::Bars;
    std::vector<std::string> groups;  // of bars: their names, below them; of spans: the lanes'
    std::string x_title;
    std::vector<double> x_ticks;  // of lines; none: round values
    double x_end = 0;             // of spans: their axis goes so far at least
    bool x_is_logarithmic = false;
    bool y_is_logarithmic = false;
    std::vector<Series> series;
    std::optional<Limit> limit;
  };

  std::string title;
  std::vector<std::string> notes;  // below the title, a line each
  uint32_t columns = 1;
  double panel_width = 440;  // pixels between the axes' ends
  double panel_height = 340;
  std::vector<Panel> panels;  // from left to right, then from top to bottom
};

// Values must be finite; of bars they must not be negative, and on a logarithmic axis above 0. An
// axis that is not logarithmic has a 0.
std::string figure_svg(const Figure& figure);

}  // namespace braid

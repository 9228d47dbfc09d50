// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

// A drawing on a white background, as one SVG document. Coordinates are pixels from the upper left
// corner. Texts and titles may be anything: they are escaped.
class Svg {
 public:
  static constexpr std::string_view kMuted = "#57606a";  // what explains
  static constexpr std::string_view kGrid = "#d8dee4";

  enum class Anchor { Start, Middle, End };
  struct Text {
    double size = 12;
    Anchor anchor = Anchor::Start;
    std::string_view fill = "#24292f";
    bool is_bold = false;
  };
  struct Stroke {
    std::string_view colour = "#24292f";
    double width = 1;
    std::string_view dash = {};  // "4 3"; empty: solid
  };

  Svg(double width, double height, std::string_view title);

  // `hint` is shown where the pointer rests on it.
  void rectangle(double x, double y, double width, double height, std::string_view fill,
                 double opacity = 1, std::string_view hint = {});
  // White stripes over what is there.
  void hatch(double x, double y, double width, double height);
  void line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  void polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke);
  void circle(double x, double y, double radius, std::string_view fill, std::string_view hint = {});
  void text(double x, double y, std::string_view content, const Text& style);

  std::string finish() &&;

 private:
  std::string out_;
};

// The colour of the i-th of many things: distinct, legible on white, again from the beginning after
// the last.
std::string_view series_colour(size_t i);

}  // namespace braid

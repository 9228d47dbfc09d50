// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braidctl/palette.h"

namespace braid {

// A drawing as one SVG document, which can also stand in a page. Coordinates are pixels from the
// upper left corner. Colours are those of palette.h. Texts and titles may be anything: they are
// escaped.
class Svg {
 public:
  enum class Anchor { Start, Middle, End };
  struct Text {
    double size = 12;
    Anchor anchor = Anchor::Start;
    std::string_view fill = kInk;
    bool is_bold = false;
    bool has_halo = false;  // of paper, where it crosses lines
  };
  struct Stroke {
    std::string_view colour = kInk;
    double width = 1;
    std::string_view dash = {};  // "4 3"; empty: solid
  };

  Svg(double width, double height, std::string_view title);

  // `hint` is shown where the pointer rests on it.
  void rectangle(double x, double y, double width, double height, std::string_view fill,
                 double opacity = 1, std::string_view hint = {});
  // Stripes of paper over what is there.
  void hatch(double x, double y, double width, double height);
  void line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  void polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke);
  void circle(double x, double y, double radius, std::string_view fill, std::string_view hint = {});
  void text(double x, double y, std::string_view content, const Text& style);

  std::string finish() &&;

 private:
  std::string out_;
  bool is_hatched_ = false;
};

}  // namespace braid

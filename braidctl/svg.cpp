// SPDX-License-Identifier: Apache-2.0
#include "braidctl/svg.h"

#include <fmt/format.h>

#include "braidctl/status_view.h"

namespace braid {
namespace {

constexpr std::string_view kRootClass = "braid-figure";

// XML knows no way to write most control characters: printable() takes them out first.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
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
        out += c;
    }
  }
  return out;
}

std::string hint_element(std::string_view hint) {
  return hint.empty() ? "" : fmt::format("<title>{}</title>", escape(hint));
}

std::string stroke_attributes(const Svg::Stroke& stroke) {
  std::string out =
      fmt::format(R"(stroke="{}" stroke-width="{:.2f}")", stroke.colour, stroke.width);
  if (!stroke.dash.empty()) out += fmt::format(R"( stroke-dasharray="{}")", stroke.dash);
  return out;
}

const char* anchor_name(Svg::Anchor anchor) {
  switch (anchor) {
    case Svg::Anchor::Start:
      return "start";
    case Svg::Anchor::Middle:
      return "middle";
    case Svg::Anchor::End:
      return "end";
  }
  return "start";
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title) {
  out_ = fmt::format(
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" class="{3}" width="{0:.0f}" height="{1:.0f}" )svg"
      R"svg(viewBox="0 0 {0:.0f} {1:.0f}" font-family="DejaVu Sans, Helvetica, sans-serif">)svg"
      "\n<title>{2}</title>\n",
      width, height, escape(title), kRootClass);
  rectangle(0, 0, width, height, kPaper);
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view fill,
                    double opacity, std::string_view hint) {
  out_ += fmt::format(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}")", x,
                      y, width, height, fill);
  if (opacity < 1) out_ += fmt::format(R"( fill-opacity="{:.2f}")", opacity);
  out_ += fmt::format(">{}</rect>\n", hint_element(hint));
}

void Svg::hatch(double x, double y, double width, double height) {
  is_hatched_ = true;
  // The rectangle below it keeps its hint.
  out_ += fmt::format(
      R"svg(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="url(#hatch)" )svg"
      R"svg(fill-opacity="0.6" pointer-events="none"/>)svg"
      "\n",
      x, y, width, height);
}

void Svg::line(double x1, double y1, double x2, double y2, const Stroke& stroke) {
  out_ += fmt::format(R"(<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" {}/>)"
                      "\n",
                      x1, y1, x2, y2, stroke_attributes(stroke));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke) {
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{:.2f},{:.2f} ", x, y);
  out_ += fmt::format(R"(<polyline points="{}" fill="none" stroke-linejoin="round" {}/>)"
                      "\n",
                      list, stroke_attributes(stroke));
}

void Svg::circle(double x, double y, double radius, std::string_view fill, std::string_view hint) {
  out_ += fmt::format(R"(<circle cx="{:.2f}" cy="{:.2f}" r="{:.2f}" fill="{}">{}</circle>)"
                      "\n",
                      x, y, radius, fill, hint_element(hint));
}

void Svg::text(double x, double y, std::string_view content, const Text& style) {
  if (content.empty()) return;
  std::string attributes = fmt::format(R"(font-size="{:.1f}" fill="{}" text-anchor="{}")",
                                       style.size, style.fill, anchor_name(style.anchor));
  if (style.is_bold) attributes += R"( font-weight="bold")";
  if (style.has_halo) {
    attributes += fmt::format(R"( stroke="{}" stroke-width="3" paint-order="stroke")", kPaper);
  }
  out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, attributes,
                      escape(content));
}

std::string Svg::finish() && {
  if (is_hatched_) {
    out_ += fmt::format(
        R"svg(<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" )svg"
        R"svg(patternTransform="rotate(45)"><rect width="2.4" height="5" fill="{}"/>)svg"
        "</pattern></defs>\n",
        kPaper);
  }
  out_ += dark_style(kRootClass, out_);
  return std::move(out_) + "</svg>\n";
}

}  // namespace braid

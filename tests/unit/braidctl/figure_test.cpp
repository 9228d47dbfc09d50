// SPDX-License-Identifier: Apache-2.0
#include "braidctl/figure.h"

#include <gtest/gtest.h>

#include "braidctl/palette.h"

namespace braid {
namespace {

size_t times(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

Figure bar_figure() {
  Figure figure;
  figure.title = "All-reduce <1>";
  figure.notes = {"on two nodes"};
  Figure::Panel panel;
  panel.title = "bus bandwidth (Gbit/s)";
  panel.groups = {"1 kB", "1 MB"};
  panel.series = {{"braid", {{0, 0.5}, {1, 1.5}}}, {"gloo", {{1, 1}}}};
  panel.limit = {2, "the wire"};
  figure.panels = {panel};
  return figure;
}

Figure line_figure() {
  Figure figure;
  Figure::Panel panel;
  panel.title = "loss";
  panel.kind = Figure::Kind::Lines;
  panel.x_title = "seconds";
  panel.series = {{"braid", {{1, 3}, {2, 1}}}, {"gloo", {{1, 2}, {4, 1}}}};
  figure.panels = {panel};
  return figure;
}

TEST(FigureSvg, DrawsBarsTheirNamesAndTheLimit) {
  const std::string svg = figure_svg(bar_figure());
  for (const char* part :
       {">All-reduce &lt;1&gt;</text>", ">on two nodes</text>", ">bus bandwidth (Gbit/s)</text>",
        ">1 kB</text>", ">1 MB</text>", ">0.50</text>", ">1.50</text>", ">1.00</text>",
        "<title>braid, 1 kB: 0.5</title>", "<title>gloo, 1 MB: 1</title>", ">the wire</text>",
        ">braid</text>", ">gloo</text>"}) {
    EXPECT_EQ(times(svg, part), 1u) << part;
  }
  EXPECT_EQ(times(svg, "<title>gloo, 1 kB"), 0u) << "no bar where there is no value";
}

TEST(FigureSvg, StacksBars) {
  Figure figure = bar_figure();
  figure.panels[0].kind = Figure::Kind::StackedBars;
  const std::string svg = figure_svg(figure);
  EXPECT_EQ(times(svg, ">2.50</text>"), 1u) << "the sum of 1 MB";
  EXPECT_EQ(times(svg, ">0.50</text>"), 2u) << "of 1 kB, where one is all";
  figure.panels[0].series[1].points[0].y = 1e4;
  const std::string taller = figure_svg(figure);
  EXPECT_EQ(times(taller, ">1.50</text>"), 0u) << "a label that does not fit its bar";
  EXPECT_EQ(times(taller, "<title>braid, 1 MB: 1.5</title>"), 1u);
}

TEST(FigureSvg, DrawsLinesWithMarksUnlessTheyWouldHideThem) {
  Figure figure = line_figure();
  const std::string svg = figure_svg(figure);
  EXPECT_EQ(times(svg, "<polyline"), 2u);
  EXPECT_EQ(times(svg, "<circle"), 4u);
  EXPECT_EQ(times(svg, "<title>gloo: 4, 1</title>"), 1u);
  EXPECT_EQ(times(svg, ">seconds</text>"), 1u);
  for (int i = 0; i < 1000; ++i) figure.panels[0].series[0].points.push_back({3.0 + i, 1});
  const std::string dense = figure_svg(figure);
  EXPECT_EQ(times(dense, "<polyline"), 2u);
  EXPECT_EQ(times(dense, "<circle"), 0u);
}

TEST(FigureSvg, GivesANameOneColourInAllPanels) {
  Figure figure = bar_figure();
  figure.panels.push_back(line_figure().panels[0]);
  figure.panels[1].series.erase(figure.panels[1].series.begin());
  const std::string svg = figure_svg(figure);
  EXPECT_EQ(times(svg, ">gloo</text>"), 1u) << "one legend";
  EXPECT_EQ(times(svg, "\"round\" stroke=\"" + std::string(series_colour(1)) + "\""), 1u);
  EXPECT_EQ(times(svg, "\"round\" stroke="), 1u);
}

TEST(FigureSvg, HasDarkColoursForThoseThatItUses) {
  const std::string svg = figure_svg(bar_figure());
  const size_t style = svg.find("@media (prefers-color-scheme: dark)");
  ASSERT_NE(style, std::string::npos);
  for (const std::string_view colour : {kPaper, kInk, kMuted, series_colour(0), series_colour(1)})
    EXPECT_NE(svg.find("[fill=\"" + std::string(colour), style), std::string::npos) << colour;
  EXPECT_EQ(svg.find(series_colour(2), style), std::string::npos);
}

TEST(FigureSvg, PutsPanelsBesideAndBelowEachOther) {
  Figure figure = bar_figure();
  figure.panels.assign(3, figure.panels[0]);
  const std::string column = figure_svg(figure);
  figure.columns = 2;
  const std::string rows = figure_svg(figure);
  const auto height = [](const std::string& svg) {
    return std::stod(svg.substr(svg.find(" height=\"") + 9));
  };
  EXPECT_GT(height(column), height(rows));
  figure.panels.pop_back();
  EXPECT_GT(height(rows), height(figure_svg(figure)));
}

TEST(FigureSvg, DrawsNothingAndExtremes) {
  Figure figure = bar_figure();
  for (const double value : {0.0, 5e-324, 1e100}) {
    for (Figure::Series& series : figure.panels[0].series) {
      for (Figure::Point& point : series.points) point.y = value;
    }
    figure.panels[0].limit.reset();
    for (const Figure::Kind kind :
         {Figure::Kind::Bars, Figure::Kind::StackedBars, Figure::Kind::Lines}) {
      figure.panels[0].kind = kind;
      const std::string svg = figure_svg(figure);
      EXPECT_EQ(svg.find("nan"), std::string::npos) << value;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << value;
    }
  }
}

}  // namespace
}  // namespace braid

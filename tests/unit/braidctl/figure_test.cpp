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

Figure span_figure() {
  Figure figure;
  Figure::Panel panel;
  panel.title = "one rank";
  panel.kind = Figure::Kind::Spans;
  panel.x_title = "ms";
  panel.groups = {"computing", "network"};
  panel.series = {
      {.name = "forward", .points = {}, .spans = {{0, 0, 40, "step 1"}, {0, 40, 41, "short"}}},
      {.name = "gradient", .points = {}, .spans = {{1, 10, 30}, {1, 20, 50}, {1, 30, 45}}}};
  figure.panels = {panel};
  return figure;
}

TEST(FigureSvg, DrawsSpansInLanesAndTextsWhereTheyFit) {
  const std::string svg = figure_svg(span_figure());
  for (const char* part : {">computing</text>", ">network</text>", ">ms</text>", ">step 1</text>",
                           "<title>forward, step 1: 0 to 40</title>",
                           "<title>gradient: 20 to 50</title>", ">gradient</text>"}) {
    EXPECT_EQ(times(svg, part), 1u) << part;
  }
  EXPECT_EQ(times(svg, ">short</text>"), 0u);
  EXPECT_EQ(times(svg, "<title>forward, short: 40 to 41</title>"), 1u);
}

TEST(FigureSvg, SpansThatOverlapHaveRowsOfTheirOwn) {
  const std::string svg = figure_svg(span_figure());
  const auto top_of = [&svg](const char* hint) {
    const size_t element = svg.rfind("<rect", svg.find(hint));
    return std::stod(svg.substr(svg.find(" y=\"", element) + 4));
  };
  EXPECT_LT(top_of("gradient: 10 to 30"), top_of("gradient: 20 to 50"));
  EXPECT_EQ(top_of("gradient: 10 to 30"), top_of("gradient: 30 to 45")) << "the row is free again";
}

TEST(FigureSvg, ManyRowsStayWithinThePanel) {
  Figure figure = span_figure();
  for (int i = 0; i < 500; ++i) figure.panels[0].series[1].spans.push_back({1, 60, 61 + 0.05 * i});
  const std::string svg = figure_svg(figure);
  const auto number_of = [&svg](const char* hint, const char* name) {
    const size_t element = svg.rfind("<rect", svg.find(hint));
    return std::stod(svg.substr(svg.find(name, element) + std::string_view(name).size()));
  };
  // Below the title there are 340 pixels for the lanes.
  EXPECT_LT(number_of("gradient: 60 to 85.95", " y=\""), 8 + 34 + figure.panel_height);
  EXPECT_EQ(times(svg, ">step 1</text>"), 1u) << "the lane of one row is as high as before";
}

TEST(FigureSvg, AnAxisOfSpansGoesAsFarAsItIsTold) {
  Figure figure = span_figure();
  EXPECT_EQ(times(figure_svg(figure), ">90</text>"), 0u);
  figure.panels[0].x_end = 100;
  EXPECT_EQ(times(figure_svg(figure), ">90</text>"), 1u);
  figure.panels[0].x_end = 0;
  for (Figure::Series& series : figure.panels[0].series) series.spans.clear();
  const std::string empty = figure_svg(figure);
  EXPECT_EQ(empty.find("nan"), std::string::npos);
  EXPECT_EQ(empty.find("inf"), std::string::npos);
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

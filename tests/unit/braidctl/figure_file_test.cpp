// SPDX-License-Identifier: Apache-2.0
#include "braidctl/figure_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

nlohmann::json bar_document() {
  return nlohmann::json::parse(
      R"({"title": "t", "notes": ["a", "b"], "columns": 2, "panel_width": 300,
    "panel_height": 200, "panels": [{"title": "p", "note": "n", "kind": "bars",
    "groups": ["g", "h"], "series": [{"name": "s", "values": [1, null]}],
    "limit": {"value": 3, "text": "l"}}]})");
}

nlohmann::json line_document() {
  return nlohmann::json::parse(R"({"panels": [{"title": "p", "kind": "lines", "x_title": "x",
    "x_is_logarithmic": true, "series": [{"name": "s", "points": [[1, 2], [3, -4]]}]}]})");
}

TEST(ParseFigure, ReadsBars) {
  const auto figure = parse_figure(bar_document().dump(), "f");
  ASSERT_TRUE(figure) << figure.status().to_string();
  EXPECT_EQ(figure->title, "t");
  EXPECT_EQ(figure->notes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(figure->columns, 2u);
  EXPECT_EQ(figure->panel_width, 300);
  EXPECT_EQ(figure->panel_height, 200);
  ASSERT_EQ(figure->panels.size(), 1u);
  const Figure::Panel& panel = figure->panels[0];
  EXPECT_EQ(panel.title, "p");
  EXPECT_EQ(panel.note, "n");
  EXPECT_EQ(panel.kind, Figure::Kind::Bars);
  EXPECT_EQ(panel.groups, (std::vector<std::string>{"g", "h"}));
  ASSERT_EQ(panel.series.size(), 1u);
  EXPECT_EQ(panel.series[0].name, "s");
  ASSERT_EQ(panel.series[0].points.size(), 1u) << "null is no bar";
  EXPECT_EQ(panel.series[0].points[0].x, 0);
  EXPECT_EQ(panel.series[0].points[0].y, 1);
  ASSERT_TRUE(panel.limit);
  EXPECT_EQ(panel.limit->value, 3);
  EXPECT_EQ(panel.limit->text, "l");
}

TEST(ParseFigure, ReadsLines) {
  const auto figure = parse_figure(line_document().dump(), "f");
  ASSERT_TRUE(figure) << figure.status().to_string();
  const Figure::Panel& panel = figure->panels[0];
  EXPECT_EQ(panel.kind, Figure::Kind::Lines);
  EXPECT_EQ(panel.x_title, "x");
  EXPECT_TRUE(panel.x_is_logarithmic);
  EXPECT_FALSE(panel.y_is_logarithmic);
  ASSERT_EQ(panel.series[0].points.size(), 2u);
  EXPECT_EQ(panel.series[0].points[1].x, 3);
  EXPECT_EQ(panel.series[0].points[1].y, -4);
}

nlohmann::json span_document() {
  return nlohmann::json::parse(R"({"panels": [{"title": "p", "kind": "spans", "x_end": 9,
    "groups": ["l", "m"], "series": [{"name": "s", "spans": [{"lane": 0, "begin": 0, "end": 2},
    {"lane": 1, "begin": 1, "end": 1.5, "text": "t"}]}]}]})");
}

TEST(ParseFigure, ReadsSpans) {
  const auto figure = parse_figure(span_document().dump(), "f");
  ASSERT_TRUE(figure) << figure.status().to_string();
  const Figure::Panel& panel = figure->panels[0];
  EXPECT_EQ(panel.kind, Figure::Kind::Spans);
  EXPECT_EQ(panel.x_end, 9);
  ASSERT_EQ(panel.series[0].spans.size(), 2u);
  EXPECT_EQ(panel.series[0].spans[0].text, "");
  const Figure::Span& span = panel.series[0].spans[1];
  EXPECT_EQ(span.lane, 1u);
  EXPECT_EQ(span.begin, 1);
  EXPECT_EQ(span.end, 1.5);
  EXPECT_EQ(span.text, "t");
}

enum class Document { Bars, Lines, Spans };

nlohmann::json document_of(Document document) {
  return document == Document::Bars    ? bar_document()
         : document == Document::Lines ? line_document()
                                       : span_document();
}

struct Wrong {
  Document document;
  const char* place;  // what is replaced
  const char* value;  // by what; empty: it is removed
  const char* says;
};

class RefusedFigure : public testing::TestWithParam<Wrong> {};

TEST_P(RefusedFigure, NamesTheFieldAndWhatIsRight) {
  const Wrong& wrong = GetParam();
  nlohmann::json document = document_of(wrong.document);
  const nlohmann::json::json_pointer place(wrong.place);
  if (*wrong.value != 0) {
    document[place] = nlohmann::json::parse(wrong.value);
  } else {
    document[place.parent_pointer()].erase(place.back());
  }
  const auto figure = parse_figure(document.dump(), "f");
  ASSERT_FALSE(figure);
  EXPECT_EQ(figure.status().message(), wrong.says);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RefusedFigure,
    testing::Values(
        Wrong{Document::Bars, "/panels", "", "f: panels is missing; right is a list of 1 to 256"},
        Wrong{Document::Bars, "/panels", "[]",
              "f: panels: a list of 0 has not the length; right is a list of 1 to 256"},
        Wrong{Document::Bars, "/columns", "0",
              "f: columns: 0 is too small; right is how many panels a row has, 1 to 16"},
        Wrong{Document::Bars, "/panel_width", "5",
              "f: panel_width: 5 is too small; right is a number of pixels from 80 to 4000"},
        Wrong{Document::Bars, "/colour", "1",
              "f: \"colour\" is not known; right are title, notes, columns, panel_width, "
              "panel_height, panels, and anything that begins with _"},
        Wrong{Document::Bars, "/notes/1", "\"\"",
              "f: notes[1]: \"\" is empty; right is a text that is not empty"},
        Wrong{Document::Bars, "/panels/0", "3", "f: panels[0]: 3 is no object; right is {…}"},
        Wrong{Document::Bars, "/panels/0/kind", "\"pie\"",
              "f: panels[0].kind: \"pie\" is not known; right is bars, stacked_bars, lines or "
              "spans"},
        Wrong{Document::Bars, "/panels/0/title", "",
              "f: panels[0].title is missing; right is a text that is not empty"},
        Wrong{Document::Bars, "/panels/0/groups", "",
              "f: panels[0].groups is missing; right is the names below the bars"},
        Wrong{Document::Bars, "/panels/0/y_is_logarithmic", "true",
              "f: panels[0].y_is_logarithmic: true is for lines only; right is none"},
        Wrong{Document::Bars, "/panels/0/series/1", "{\"name\": \"s\", \"values\": [1, 2]}",
              "f: panels[0].series[1].name: \"s\" stands twice; right is a name that no other "
              "series has"},
        Wrong{Document::Bars, "/panels/0/series/0/values", "[1]",
              "f: panels[0].series[0].values: a list of 1 does not fit; right is one value, or "
              "null, for each of the 2 groups"},
        Wrong{Document::Bars, "/panels/0/series/0/values/1", "-1",
              "f: panels[0].series[0].values[1]: -1 is negative; right is a number from 0, or null "
              "for no bar"},
        Wrong{Document::Bars, "/panels/0/series/0/values/1", "1e101",
              "f: panels[0].series[0].values[1]: 1e+101 is too large; right is a number from 0, or "
              "null for no bar"},
        Wrong{Document::Bars, "/panels/0/series/0/points", "[]",
              "f: panels[0].series[0]: \"points\" is not known; right are name, values, and "
              "anything that begins with _"},
        Wrong{Document::Bars, "/panels/0/limit/value", "0",
              "f: panels[0].limit.value: 0 is no limit; right is a number above 0"},
        Wrong{Document::Lines, "/panels/0/groups", "[\"g\"]",
              "f: panels[0].groups: a list of 1 is not for lines; right is none"},
        Wrong{Document::Lines, "/panels/0/x_is_logarithmic", "1",
              "f: panels[0].x_is_logarithmic: 1 is neither; right is true or false"},
        Wrong{Document::Lines, "/panels/0/series/0/points/1", "[3]",
              "f: panels[0].series[0].points[1]: a list of 1 is no point; right is [x, y]"},
        Wrong{Document::Lines, "/panels/0/series/0/points/1/0", "0",
              "f: panels[0].series[0].points[1][0]: 0 has no logarithm; right is a number above 0, "
              "for a logarithmic axis"},
        Wrong{Document::Lines, "/panels/0/series/0/points/1/1", "\"4\"",
              "f: panels[0].series[0].points[1][1]: \"4\" is no number; right is a number"},
        Wrong{Document::Lines, "/panels/0/x_end", "1",
              "f: panels[0].x_end: 1 is for spans only; right is none"},
        Wrong{Document::Spans, "/panels/0/groups", "",
              "f: panels[0].groups is missing; right is the names of the lanes"},
        Wrong{Document::Spans, "/panels/0/x_end", "-1",
              "f: panels[0].x_end: -1 is negative; right is a number from 0"},
        Wrong{Document::Spans, "/panels/0/limit", "{\"value\": 1, \"text\": \"l\"}",
              "f: panels[0].limit: an object is not for spans; right is none"},
        Wrong{
            Document::Spans, "/panels/0/series/0/spans/0/lane", "2",
            "f: panels[0].series[0].spans[0].lane: 2 is too large; right is 0 to 1, one of groups"},
        Wrong{Document::Spans, "/panels/0/series/0/spans/0/begin", "",
              "f: panels[0].series[0].spans[0].begin is missing; right is a number from 0"},
        Wrong{Document::Spans, "/panels/0/series/0/spans/0/begin", "-1",
              "f: panels[0].series[0].spans[0].begin: -1 is negative; right is a number from 0"},
        Wrong{Document::Spans, "/panels/0/series/0/spans/1/end", "0.5",
              "f: panels[0].series[0].spans[1].end: 0.5 is before the begin; right is the begin or "
              "later"}));

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "braidctl/top_view.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Key = Terminal::Key;

JobLine line_of(const std::string& name, Cause cause, double step_seconds = 0.1) {
  JobLine line;
  line.job = name;
  line.ranks = line.nodes = 2;
  Explanation what;
  what.step_seconds = step_seconds;
  what.exposed_seconds = step_seconds / 4;
  what.findings.push_back({.cause = cause, .text = "it is so", .advice = "help"});
  line.explanation = std::move(what);
  return line;
}

std::vector<JobLine> three() {
  return {line_of("a", Cause::Compute, 0.3), line_of("b", Cause::RailDown, 0.1),
          line_of("c", Cause::LateRank, 0.2)};
}

std::string screen(const TopView& view, Terminal::Size size = {24, 100}) {
  std::string all;
  for (const std::string& line : view.render(size)) all += line + '\n';
  return all;
}

// The jobs from above to below.
std::string order_of(const TopView& view) {
  std::string names;
  const auto lines = view.render({24, 100});
  for (size_t i = 2; i < lines.size(); ++i) {
    for (const char* name : {"a", "b", "c"}) {
      if (lines[i].find(std::string(" ") + name + "  ") != std::string::npos) names += name;
    }
  }
  return names;
}

void press(TopView& view, const std::string& characters) {
  for (const char c : characters) EXPECT_FALSE(view.on_key(Key::Character, c)) << c;
}

TEST(TopView, WhatIsBrokenIsMarkedAndComesFirst) {
  TopView view(/*has_colours=*/true);
  view.set_lines(three(), "");
  EXPECT_EQ(order_of(view), "bca");
  EXPECT_THAT(view.render({24, 100}), Contains(StartsWith("\x1b[33m!  c")));
  EXPECT_EQ(trouble_of(line_of("x", Cause::Stalled)), Trouble::Fault);
  EXPECT_EQ(trouble_of(line_of("x", Cause::Network)), Trouble::None);
  JobLine missing = line_of("x", Cause::Compute);
  missing.explanation->missing = {"node2"};
  EXPECT_EQ(trouble_of(missing), Trouble::Fault);
}

TEST(TopView, MarksStayWithoutColours) {
  TopView view(/*has_colours=*/false);
  view.set_lines(three(), "");
  EXPECT_THAT(screen(view), Not(HasSubstr("\x1b[33m")));
  EXPECT_THAT(view.render({24, 100}), Contains(StartsWith("!  c")));
}

TEST(TopView, KeysChangeTheOrder) {
  TopView view(true);
  view.set_lines(three(), "");
  for (const char* order : {"abc", "abc", "acb", "abc", "bca"}) {
    press(view, "s");
    EXPECT_EQ(order_of(view), order);
  }
  press(view, "r");
  EXPECT_EQ(order_of(view), "acb");
}

TEST(TopView, TheChosenJobStaysChosen) {
  TopView view(true);
  view.set_lines(three(), "");
  press(view, "jj");
  EXPECT_THAT(screen(view), HasSubstr("\x1b[7m   a"));
  press(view, "j");  // the last one
  press(view, "s");
  EXPECT_THAT(screen(view), HasSubstr("\x1b[7m   a"));
  view.set_lines({line_of("c", Cause::Compute)}, "");
  EXPECT_THAT(screen(view), HasSubstr("\x1b[7m   c"));
  view.set_lines({}, "");
  EXPECT_FALSE(view.on_key(Key::Enter, 0));
  EXPECT_THAT(screen(view), HasSubstr("no jobs"));
}

TEST(TopView, EnterSaysWhyAndQGoesBackFirst) {
  TopView view(true);
  view.set_lines(three(), "");
  EXPECT_FALSE(view.on_key(Key::Enter, 0));
  EXPECT_THAT(screen(view), HasSubstr("job 'b': why"));
  EXPECT_THAT(screen(view), HasSubstr("it is so"));
  EXPECT_FALSE(view.on_key(Key::Character, 'q'));
  press(view, "?");
  EXPECT_THAT(screen(view), HasSubstr("another order"));
  EXPECT_FALSE(view.on_key(Key::Escape, 0));
  EXPECT_TRUE(view.on_key(Key::Character, 'q'));
}

TEST(TopView, EverythingFits) {
  std::vector<JobLine> many;
  for (int i = 0; i < 50; ++i)
    many.push_back(line_of("job-ü" + std::to_string(100 + i), Cause::Compute));
  TopView view(false);
  view.set_lines(many, "2 jobs of other users are not shown");
  for (const size_t rows : {1U, 3U, 10U, 24U}) EXPECT_LE(view.render({rows, 20}).size(), rows);
  // The chosen one is always seen.
  for (int i = 0; i < 49; ++i) press(view, "j");
  EXPECT_THAT(screen(view, {10, 100}), HasSubstr("job-ü149"));
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(view.on_key(Key::PageUp, 0));
  EXPECT_THAT(screen(view, {10, 100}), HasSubstr("job-ü109"));
}

TEST(TopView, NobodysNameMovesTheCursor) {
  TopView view(false);
  view.set_lines({line_of("x\x1b[2Jy", Cause::Compute)}, "");
  EXPECT_THAT(screen(view), Not(HasSubstr("\x1b[2J")));
}

}  // namespace
}  // namespace braid

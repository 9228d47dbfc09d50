// SPDX-License-Identifier: Apache-2.0
#include "base/repeated_lines.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kWindow = RepeatedLines::kWindowSeconds * kSecond;

class RepeatedLinesTest : public ::testing::Test {
 protected:
  // How many of `count` lines are written.
  size_t say(uint64_t kind, size_t count, uint64_t now_ns,
             const RepeatedLines::Subject& subject = {}) {
    size_t written = 0;
    for (size_t i = 0; i < count; ++i)
      written += lines_.admit(kind, subject, 2, "line " + std::to_string(i), now_ns) ? 1 : 0;
    return written;
  }
  RepeatedLines lines_;
};

TEST_F(RepeatedLinesTest, WritesTheFirstOnesOfAWindowAndCountsTheOthers) {
  EXPECT_EQ(say(1, 1254, kSecond), RepeatedLines::kLinesPerWindow);
  EXPECT_EQ(lines_.next_end_ns(), kSecond + kWindow);
  EXPECT_TRUE(lines_.take_ended(kWindow).empty()) << "the window is open";
  const auto ended = lines_.take_ended(kSecond + kWindow);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(held_text(ended[0]), "and 1,234 more lines like this in 10 s; the last: line 1253");
  EXPECT_EQ(lines_.next_end_ns(), std::nullopt);
  EXPECT_TRUE(lines_.take_ended(kSecond + 5 * kWindow).empty()) << "told once";
}

TEST_F(RepeatedLinesTest, KindsDoNotCountForEachOther) {
  EXPECT_EQ(say(1, 100, 0), 20u);
  EXPECT_EQ(say(2, 20, 0), 20u);
  EXPECT_EQ(say(3, 21, kSecond), 20u);
  EXPECT_EQ(lines_.take_ended(kWindow).size(), 1u);
  EXPECT_EQ(lines_.next_end_ns(), kSecond + kWindow);
  EXPECT_EQ(lines_.take_ended(kSecond + kWindow).size(), 1u);
}

TEST_F(RepeatedLinesTest, AFloodAboutOneHidesNothingAboutAnother) {
  EXPECT_EQ(say(1, 1000, 0, {{}, 7}), 20u);
  EXPECT_EQ(say(1, 20, 0, {{}, 8}), 20u);
  EXPECT_EQ(say(1, 20, 0, {{}, 7}), 0u);
  EXPECT_EQ(lines_.take_ended(kWindow).size(), 1u);
}

TEST_F(RepeatedLinesTest, ThingsAreBoundedPerUserAndOfNoUser) {
  const auto expect_bounded = [this](std::optional<uint32_t> user, size_t max) {
    size_t written = 0;
    for (uint64_t thing = 1; thing <= 1000; ++thing) written += say(1, 30, 0, {user, thing});
    EXPECT_EQ(written, (max + 1) * RepeatedLines::kLinesPerWindow) << "further ones share a window";
    EXPECT_EQ(lines_.take_ended(kWindow).size(), max + 1);
    EXPECT_EQ(say(1, 1, kWindow, {user, 2000}), 1u) << "those whose window is over make room";
  };
  expect_bounded(std::nullopt, RepeatedLines::kThingsMax);
  expect_bounded(7, RepeatedLines::kThingsOfUserMax);
}

TEST_F(RepeatedLinesTest, AUserWithManyThingsHidesNothingOfAnotherUser) {
  for (uint64_t thing = 1; thing <= 10'000; ++thing) say(1, 30, 0, {7, thing});
  EXPECT_EQ(say(1, 20, 0, {8, 20'000}), 20u);
  EXPECT_EQ(say(1, 20, 0, {8, 1}), 20u) << "a thing of another user, of the same name";
  EXPECT_EQ(say(1, 20, 0, {{}, 20'000}), 20u) << "and what is about no user";
  EXPECT_EQ(say(1, 20, 0, {7, 20'000}), 0u);
}

TEST_F(RepeatedLinesTest, WhatIsAboutNoUserHidesNothingOfAUser) {
  for (uint64_t thing = 1; thing <= 10'000; ++thing) say(1, 30, 0, {{}, thing});
  EXPECT_EQ(say(1, 20, 0, {7, 20'000}), 20u);
}

TEST_F(RepeatedLinesTest, UsersAreBoundedAndMakeRoomWhenTheirWindowsAreOver) {
  constexpr uint32_t kMax = RepeatedLines::kUsersMax;
  size_t written = 0;
  for (uint32_t user = 0; user < kMax; ++user) written += say(1, 20, 0, {user, 1});
  EXPECT_EQ(written, kMax * RepeatedLines::kLinesPerWindow);
  EXPECT_EQ(say(1, 30, 0, {kMax, 1}) + say(1, 30, 0, {kMax + 1, 1}), 20u) << "these share a window";
  EXPECT_EQ(say(1, 20, 0, {{}, 1}), 20u) << "what is about no user is no user more";
  EXPECT_EQ(lines_.take_ended(kWindow).size(), 1u);
  EXPECT_EQ(say(1, 20, kWindow, {kMax, 1}), 20u);
  EXPECT_EQ(say(1, 20, kWindow, {kMax + 1, 1}), 20u);
}

TEST_F(RepeatedLinesTest, AUserWhoseLinesAreStillToBeToldKeepsHisPlace) {
  constexpr uint32_t kMax = RepeatedLines::kUsersMax;
  for (uint32_t user = 0; user < kMax; ++user) say(1, user == 3 ? 25 : 1, 0, {user, 1});
  EXPECT_EQ(say(1, 20, kWindow, {kMax, 1}), 20u) << "all others have made room";
  const auto ended = lines_.take_ended(kWindow);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].lines, 5u);
}

TEST_F(RepeatedLinesTest, ANewWindowWritesAgain) {
  EXPECT_EQ(say(1, 20, 0), 20u);
  EXPECT_EQ(say(1, 5, kWindow), 5u) << "nothing was held back in the first one";
  EXPECT_EQ(say(1, 30, kWindow), 15u);
  EXPECT_EQ(say(1, 1, 3 * kWindow), 0u) << "what was held back is to be told first";
  ASSERT_EQ(lines_.take_ended(3 * kWindow).size(), 1u);
  EXPECT_EQ(say(1, 30, 3 * kWindow), 20u);
}

TEST_F(RepeatedLinesTest, TellsOfTheHighestLevelAndCutsTheLastLine) {
  say(1, 20, 0);
  lines_.admit(1, {}, 4, "error", 0);
  lines_.admit(1, {}, 3, std::string(10'000, 'x'), 0);
  const auto ended = lines_.take_ended(kWindow);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].level, 4);
  EXPECT_EQ(ended[0].lines, 2u);
  EXPECT_EQ(ended[0].last, std::string(RepeatedLines::kLastBytesMax, 'x'));
}

TEST_F(RepeatedLinesTest, AFloodFromManyPlacesIsHeldBackFromEach) {
  for (uint64_t kind = 0; kind < 100; ++kind) EXPECT_EQ(say(kind, 1000, kind), 20u);
  uint64_t held = 0;
  for (const auto& one : lines_.take_ended(UINT64_MAX)) held += one.lines;
  EXPECT_EQ(held, 98'000u);
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "tune/scoreboard.h"

#include <cmath>

#include <gtest/gtest.h>

namespace braid {
namespace {

const Setting kDefaults{{0}};
const Setting kOther{{1}};
const Setting kThird{{2}};

void add(Scoreboard& board, const Setting& setting, bool is_anchor, double seconds) {
  board.add(setting, is_anchor, std::vector<double>(3, seconds));
}

double score_of(const Scoreboard& board, const Setting& setting) {
  return board.scores()[board.place_of(setting).value()].score;
}

TEST(Scoreboard, ScoresAreRelativeToTheDefaults) {
  Scoreboard board(kDefaults);
  EXPECT_FALSE(board.has_anchor());
  add(board, kDefaults, true, 2);
  add(board, kOther, false, 1);
  EXPECT_EQ(score_of(board, kDefaults), 0);
  EXPECT_NEAR(score_of(board, kOther), std::log(0.5), 1e-9);
  EXPECT_EQ(board.turns_since_anchor(), 1u);
  EXPECT_NEAR(board.incumbent_seconds(), 2, 1e-9);
}

TEST(Scoreboard, PromotesTheLastTurnsSetting) {
  Scoreboard board(kDefaults);
  add(board, kDefaults, true, 2);
  add(board, kOther, false, 1);
  board.promote();
  EXPECT_EQ(board.incumbent_setting(), kOther);
  EXPECT_EQ(board.turns_since_anchor(), 0u);
  EXPECT_NEAR(board.incumbent_seconds(), 1, 1e-9);
  add(board, kThird, false, 0.5);
  EXPECT_NEAR(score_of(board, kThird), std::log(0.25), 1e-9);
}

TEST(Scoreboard, ComparesWithTheAnchorsOfTheSameTime) {
  Scoreboard board(kDefaults);
  for (int i = 0; i < 4; ++i) add(board, kDefaults, true, 1);
  for (int i = 0; i < 2; ++i) add(board, kDefaults, true, 1.5);  // the network has become slower
  add(board, kOther, false, 1.5);
  EXPECT_NEAR(score_of(board, kOther), 0, 1e-9);
}

TEST(Scoreboard, AScoreChangesWhenTheNextAnchorIsKnown) {
  Scoreboard board(kDefaults);
  add(board, kDefaults, true, 1);
  add(board, kThird, false, 1);
  add(board, kThird, false, 1);
  add(board, kOther, false, 0.5);  // a wonder
  EXPECT_NEAR(score_of(board, kOther), std::log(0.5), 1e-9);
  add(board, kDefaults, true, 0.5);  // no wonder
  EXPECT_NEAR(score_of(board, kOther), 0, 1e-9);
}

TEST(Scoreboard, RepeatsAreAveraged) {
  Scoreboard board(kDefaults);
  add(board, kDefaults, true, 1);
  add(board, kOther, false, 1.1);
  const double once = board.scores()[1].noise;
  add(board, kOther, false, 1 / 1.1);
  EXPECT_NEAR(score_of(board, kOther), 0, 1e-9);
  EXPECT_LT(board.scores()[1].noise, once);
  EXPECT_EQ(board.scores()[1].turns, 2u);
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(PlanTest, GroupsThatCoverAllTensorsAreAPlan) {
  EXPECT_TRUE(check_plan({{{0, 2}, {2, 3, 4}, {3, 7}}}, 7).is_ok());
  EXPECT_TRUE(check_plan({}, 0).is_ok());
}

TEST(PlanTest, AGapIsNamed) {
  EXPECT_EQ(check_plan({{{0, 2}, {3, 4}}}, 4).message(), "group 1 begins at tensor 3 instead of 2");
  EXPECT_EQ(check_plan({{{1, 2}}}, 2).message(), "group 0 begins at tensor 1 instead of 0");
}

TEST(PlanTest, AnOverlapIsNamed) {
  EXPECT_EQ(check_plan({{{0, 2}, {1, 4}}}, 4).message(), "group 1 begins at tensor 1 instead of 2");
}

TEST(PlanTest, AnEmptyGroupIsNamed) {
  EXPECT_EQ(check_plan({{{0, 2}, {2, 2}}}, 2).message(), "group 1 is empty: [2, 2)");
}

TEST(PlanTest, AGroupWithoutPiecesIsNamed) {
  EXPECT_EQ(check_plan({{{0, 2, 0}}}, 2).message(), "group 0 is sent in no pieces");
}

TEST(PlanTest, MissingAndStrangeTensorsAreCounted) {
  EXPECT_EQ(check_plan({{{0, 2}}}, 3).message(), "the groups cover 2 tensors of 3");
  EXPECT_EQ(check_plan({{{0, 2}}}, 1).message(), "the groups cover 2 tensors of 1");
  EXPECT_EQ(check_plan({}, 1).message(), "the groups cover 0 tensors of 1");
}

}  // namespace
}  // namespace braid

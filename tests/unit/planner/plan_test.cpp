// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(PlanTest, GroupsThatCoverAllTensorsAreAPlan) {
  EXPECT_TRUE(check_plan({{{0, 2}, {2, 3, 4}, {3, 7}}}, 7).is_ok());
  EXPECT_TRUE(check_plan({}, 0).is_ok());
}

TEST(PlanTest, WhatIsWrongIsNamed) {
  const auto error = [](const Plan& plan, size_t tensors) {
    return check_plan(plan, tensors).message();
  };
  EXPECT_EQ(error({{{0, 2}, {3, 4}}}, 4), "group 1 begins at tensor 3 instead of 2");
  EXPECT_EQ(error({{{1, 2}}}, 2), "group 0 begins at tensor 1 instead of 0");
  EXPECT_EQ(error({{{0, 2}, {1, 4}}}, 4), "group 1 begins at tensor 1 instead of 2");
  EXPECT_EQ(error({{{0, 2}, {2, 2}}}, 2), "group 1 is empty: [2, 2)");
  EXPECT_EQ(error({{{0, 2, 0}}}, 2), "group 0 is sent in no pieces");
  EXPECT_EQ(error({{{0, 2}}}, 3), "the groups cover 2 tensors of 3");
  EXPECT_EQ(error({{{0, 2}}}, 1), "the groups cover 2 tensors of 1");
  EXPECT_EQ(error({}, 1), "the groups cover 0 tensors of 1");
}

}  // namespace
}  // namespace braid

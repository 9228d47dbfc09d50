// SPDX-License-Identifier: Apache-2.0
#include "planning/step_times.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

using Times = std::vector<uint64_t>;

TEST(StepTimes, AStepLastsFromTheEndOfTheOneBefore) {
  StepTimes times(1);
  times.on_submit(0, 0, 1000);
  times.on_submit(0, 0, 1400);
  const auto first = times.on_end(0, 1500);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->step_ns, 500u) << "the first one from its first submission";
  EXPECT_EQ(first->exposed_ns, 100u);
  times.on_submit(0, 1, 2000);
  times.on_submit(0, 1, 2300);
  const auto second = times.on_end(1, 2350);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->step_ns, 850u);
  EXPECT_EQ(second->exposed_ns, 50u);
}

TEST(StepTimes, ARankIsLateAfterTheFirstOneAndWaitsTheLess) {
  StepTimes times(3);
  times.on_submit(1, 0, 1000);
  times.on_submit(2, 0, 1010);
  times.on_submit(0, 0, 1020);
  times.on_submit(2, 0, 1100);
  times.on_submit(1, 0, 1200);
  times.on_submit(0, 0, 1700);
  const auto ended = times.on_end(0, 2000);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->late_ns, (Times{600, 100, 0}));
  EXPECT_EQ(ended->wait_ns, (Times{300, 800, 900}));
  EXPECT_EQ(ended->exposed_ns, 300u) << "none of what a rank waits for another one of its node";
}

TEST(StepTimes, StepsMayOverlap) {
  StepTimes times(1);
  times.on_submit(0, 0, 100);
  times.on_submit(0, 1, 200);
  times.on_submit(0, 0, 300);
  EXPECT_EQ(times.on_end(1, 400)->exposed_ns, 200u);
  const auto other = times.on_end(0, 450);
  EXPECT_EQ(other->exposed_ns, 150u);
  EXPECT_EQ(other->step_ns, 50u);
}

TEST(StepTimes, StepsThatNeverEndAreGivenUp) {
  StepTimes times(1);
  for (uint64_t step = 0; step <= StepTimes::kStepsOpenMax; ++step) times.on_submit(0, step, step);
  EXPECT_FALSE(times.on_end(0, 1000));
  EXPECT_TRUE(times.on_end(1, 1000));
  EXPECT_FALSE(times.on_end(1, 1000)) << "it has ended";
}

}  // namespace
}  // namespace braid

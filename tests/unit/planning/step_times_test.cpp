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

TEST(StepTimes, TellsWhatPassesBeforeTheFirstGradientFromBackward) {
  StepTimes times(2);
  for (uint32_t rank = 0; rank < 2; ++rank) times.on_submit(rank, 0, 100);
  EXPECT_EQ(times.on_end(0, 200)->before_ns, (Times{0, 0})) << "there was no step before";
  times.on_submit(0, 1, 250);
  times.on_submit(1, 1, 300);
  times.on_submit(0, 1, 400);
  times.on_submit(1, 1, 900);
  const auto ended = times.on_end(1, 1000);
  EXPECT_EQ(ended->step, 1u);
  EXPECT_EQ(ended->before_ns, (Times{50, 100}));
  EXPECT_EQ(ended->backward_ns, (Times{150, 600}));
}

TEST(StepTimes, KeepsTheLatestWithoutTheFirst) {
  StepTimes times(1);
  for (uint64_t step = 0; step < 100; ++step) {
    times.on_submit(0, step, 10 * step + 1);
    times.on_end(step, 10 * step + 5);
    if (step == 0) {
      EXPECT_TRUE(times.kept().empty());
    }
  }
  ASSERT_EQ(times.kept().size(), StepTimes::kStepsKept);
  EXPECT_EQ(times.kept().front().step, 36u);
  EXPECT_EQ(times.kept().back().step, 99u);
  EXPECT_EQ(times.last_end_ns(), 995u);
}

TEST(StepTimes, StepsMayOverlap) {
  StepTimes times(1);
  times.on_submit(0, 0, 100);
  times.on_submit(0, 1, 200);
  times.on_submit(0, 0, 300);
  EXPECT_EQ(times.on_end(1, 400)->exposed_ns, 200u);
  const auto other = times.on_end(0, 450);
  EXPECT_EQ(other->step_ns, 50u);
  EXPECT_EQ(other->exposed_ns, 50u) << "no longer than the step";
  EXPECT_EQ(other->wait_ns, (Times{50}));
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

// SPDX-License-Identifier: Apache-2.0
#include "timeline/training_steps.h"

#include <gtest/gtest.h>

#include "timeline/timelines.h"

namespace braid {
namespace {

TEST(TrainingSteps, GoFromTheFirstGradientToTheLastResult) {
  const auto steps = training_steps(testing::two_steps(), 0, 0);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps.at(7).first_submit, 0u);
  EXPECT_EQ(steps.at(7).last_submit, 1000u);
  EXPECT_EQ(steps.at(7).last_result, 4000u);
  EXPECT_EQ(steps.at(8).last_result, std::nullopt);
}

TEST(TrainingSteps, EarlierOnesMayBeCutAndAreLeftOut) {
  const auto steps = training_steps(testing::two_steps(), 0, 8);
  EXPECT_EQ(steps.size(), 1u);
  EXPECT_TRUE(training_steps(testing::two_steps(), 1, 0).empty()) << "that rank is elsewhere";
}

TEST(TrainingSteps, WhatIsNotPlannedHasNone) {
  NodeTimeline timeline = testing::two_steps();
  for (auto& submit : timeline.submits) submit.is_planned = false;
  EXPECT_TRUE(training_steps(timeline, 0, 0).empty());
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "planning/set_rhythm.h"

#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Beside = std::vector<PlanReport::Beside>;

constexpr uint64_t kFactors = 1;
constexpr uint64_t kGradients = 2;

// Steps of 100 ns, whose gradients begin at 30, and factors at 0 in each so many steps.
class SetRhythmTest : public ::testing::Test {
 protected:
  void run(uint64_t steps, uint64_t factors_every) {
    for (const uint64_t end = step_ + steps; step_ < end; ++step_) {
      if (factors_every != 0 && step_ % factors_every == 0) rhythm_.on_begin(kFactors, step_ * 100);
      rhythm_.on_begin(kGradients, step_ * 100 + 30);
    }
  }
  SetRhythm rhythm_;
  uint64_t step_ = 0;
};

TEST_F(SetRhythmTest, ASetAloneHasNothingBeside) {
  run(20, 0);
  EXPECT_EQ(rhythm_.beside(kGradients), Beside());
  EXPECT_EQ(rhythm_.beside(kFactors), Beside());
}

TEST_F(SetRhythmTest, SaysHowLongBeforeTheOtherBegan) {
  run(40, 1);
  EXPECT_EQ(rhythm_.beside(kGradients), (Beside{{kFactors, 30, 1.0}}));
  const Beside beside = rhythm_.beside(kFactors);
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_EQ(beside[0].set, kGradients);
  EXPECT_EQ(beside[0].before_ns, 70u);
}

TEST_F(SetRhythmTest, ARareSetIsBesideInFewSteps) {
  run(400, 8);
  EXPECT_EQ(rhythm_.beside(kGradients), (Beside{{kFactors, 30, 0.125}}));
  EXPECT_EQ(rhythm_.beside(kFactors), (Beside{{kGradients, 70, 1.0}}));
}

TEST_F(SetRhythmTest, FollowsAnotherRhythm) {
  run(100, 1);
  run(SetRhythm::kStepsKept, 4);
  EXPECT_EQ(rhythm_.beside(kGradients), (Beside{{kFactors, 30, 0.25}}));
  run(SetRhythm::kStepsKept, 0);
  EXPECT_EQ(rhythm_.beside(kGradients), Beside());
}

TEST_F(SetRhythmTest, TheFirstStepsDoNotCount) {
  run(SetRhythm::kStepsIgnored, 1);
  EXPECT_EQ(rhythm_.beside(kGradients), Beside());
  run(1, 1);
  EXPECT_EQ(rhythm_.beside(kGradients), (Beside{{kFactors, 30, 1.0}}));
}

TEST_F(SetRhythmTest, ASetThatHasGoneIsBesideNone) {
  run(40, 1);
  rhythm_.forget(kFactors);
  EXPECT_EQ(rhythm_.beside(kGradients), Beside());
  EXPECT_EQ(rhythm_.beside(kFactors), Beside());
}

TEST_F(SetRhythmTest, TheMostFrequentOnesAreNamed) {
  for (uint64_t step = 0; step < SetRhythm::kStepsKept; ++step) {
    rhythm_.on_begin(kFactors, step * 100);
    rhythm_.on_begin(100 + step % 20, step * 100 + 10);
    rhythm_.on_begin(kGradients, step * 100 + 30);
  }
  const Beside beside = rhythm_.beside(kGradients);
  ASSERT_EQ(beside.size(), PlanReport::kBesideMax);
  EXPECT_EQ(beside[0], (PlanReport::Beside{kFactors, 30, 1.0}));
}

TEST_F(SetRhythmTest, OneUnusualStepSaysNothing) {
  run(20, 1);
  step_ += 50;
  run(20, 1);
  EXPECT_EQ(rhythm_.beside(kGradients), (Beside{{kFactors, 30, 1.0}}));
}

}  // namespace
}  // namespace braid

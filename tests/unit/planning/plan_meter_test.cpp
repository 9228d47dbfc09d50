// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_meter.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kBegin = 1'000'000;

// One rank: two tensors, the second one `apart` after the first.
void run_step(PlanMeter& meter, uint64_t step, uint64_t begin_ns, uint64_t apart) {
  EXPECT_FALSE(meter.on_submit(0, 0, step, begin_ns));
  EXPECT_TRUE(meter.on_submit(0, 1, step, begin_ns + apart));
}

TEST(PlanMeterTest, KnowsNothingAtFirst) {
  const PlanMeter meter(3, 2);
  EXPECT_EQ(meter.steps(), 0u);
  EXPECT_FALSE(meter.last_step().has_value());
  EXPECT_EQ(meter.ready_ns(0.75), (std::vector<uint64_t>{0, 0, 0}));
  EXPECT_EQ(meter.forward_ns(), 0u);
  EXPECT_EQ(meter.iteration_ns(), 0u);
}

TEST(PlanMeterTest, TheFirstStepsAreNotKept) {
  PlanMeter meter(2, 1);
  for (uint64_t step = 0; step < PlanMeter::kStepsIgnored; ++step)
    run_step(meter, step, kBegin + step * 1000, 900);
  EXPECT_EQ(meter.steps(), PlanMeter::kStepsIgnored);
  EXPECT_EQ(meter.ready_ns(0.5), (std::vector<uint64_t>{0, 0}));
  EXPECT_EQ(meter.iteration_ns(), 0u);
  run_step(meter, PlanMeter::kStepsIgnored, kBegin + 5000, 70);
  EXPECT_EQ(meter.ready_ns(0.5), (std::vector<uint64_t>{0, 70}));
}

// A meter of one rank past the steps that are ignored.
class SettledPlanMeterTest : public ::testing::Test {
 protected:
  SettledPlanMeterTest() {
    for (; step_ < PlanMeter::kStepsIgnored; ++step_) run_step(meter_, step_, kBegin + step_, 1);
  }
  PlanMeter meter_{2, 1};
  uint64_t step_ = 0;
};

TEST_F(SettledPlanMeterTest, ReadinessIsAQuantileOverTheStepsKept) {
  for (const uint64_t apart : {50, 10, 40, 20, 30}) run_step(meter_, step_++, kBegin, apart);
  EXPECT_EQ(meter_.ready_ns(0)[1], 10u);
  EXPECT_EQ(meter_.ready_ns(0.5)[1], 30u);
  EXPECT_EQ(meter_.ready_ns(0.75)[1], 40u);
  EXPECT_EQ(meter_.ready_ns(1)[1], 50u);
  EXPECT_EQ(meter_.ready_ns(1)[0], 0u);
}

TEST_F(SettledPlanMeterTest, OldStepsAreForgotten) {
  run_step(meter_, step_++, kBegin, 1'000'000);
  for (size_t i = 0; i < PlanMeter::kStepsKept; ++i) {
    EXPECT_EQ(meter_.ready_ns(1)[1], 1'000'000u);
    run_step(meter_, step_++, kBegin, 5);
  }
  EXPECT_EQ(meter_.ready_ns(1)[1], 5u);
}

TEST_F(SettledPlanMeterTest, IterationsLastFromFirstSubmissionToFirstSubmission) {
  uint64_t now = kBegin;
  for (const uint64_t pause : {1000, 3000, 2000, 9000}) {
    run_step(meter_, step_++, now, 100);
    now += pause;
  }
  run_step(meter_, step_++, now, 100);
  // The one from the ignored steps counts too; of 1000, 2000, 3000, 9000 and it, the median.
  EXPECT_GE(meter_.iteration_ns(), 2000u);
  EXPECT_LE(meter_.iteration_ns(), 3000u);
  const uint64_t before = meter_.iteration_ns();
  meter_.begin_window();
  EXPECT_EQ(meter_.iteration_ns(), before);  // until there is something newer
  run_step(meter_, step_++, now + 700, 100);
  EXPECT_EQ(meter_.iteration_ns(), 700u);
}

TEST_F(SettledPlanMeterTest, StepsThatAreLeftOutAreNoIteration) {
  const uint64_t before = meter_.iteration_ns();
  meter_.begin_window();
  run_step(meter_, 100, kBegin, 1);
  run_step(meter_, 102, kBegin + 500, 1);
  EXPECT_EQ(meter_.iteration_ns(), before);
  EXPECT_EQ(meter_.last_step(), 102u);
}

TEST_F(SettledPlanMeterTest, ForwardBeginsWithTheLastResult) {
  EXPECT_EQ(meter_.forward_ns(), 0u);  // no result yet
  run_step(meter_, step_++, kBegin, 10);
  meter_.on_published(kBegin + 20);
  meter_.on_published(kBegin + 30);
  run_step(meter_, step_++, kBegin + 130, 10);
  EXPECT_EQ(meter_.forward_ns(), 100u);
}

// A trainer that does not wait has no forward pass that could be seen.
TEST_F(SettledPlanMeterTest, AResultThatIsLaterThanTheNextStepGivesNone) {
  meter_.on_published(kBegin + 50);
  run_step(meter_, step_++, kBegin, 10);
  EXPECT_EQ(meter_.forward_ns(), 0u);
}

TEST(PlanMeterRanksTest, TheSlowestRankCounts) {
  PlanMeter meter(2, 2);
  for (uint64_t step = 0; step < PlanMeter::kStepsIgnored + 1; ++step) {
    const uint64_t now = kBegin + step * 10'000;
    EXPECT_FALSE(meter.on_submit(0, 0, step, now));
    EXPECT_FALSE(meter.on_submit(0, 1, step, now + 100));
    // Begins later; what counts is how long each takes from its own beginning.
    EXPECT_FALSE(meter.on_submit(1, 1, step, now + 5000));
    EXPECT_TRUE(meter.on_submit(1, 0, step, now + 5300));
  }
  EXPECT_EQ(meter.ready_ns(1), (std::vector<uint64_t>{300, 100}));
  EXPECT_EQ(meter.iteration_ns(), 10'000u);
}

TEST(PlanMeterRanksTest, RanksMayBeStepsApart) {
  PlanMeter meter(1, 2);
  for (uint64_t step = 0; step < PlanMeter::kStepsOpenMax; ++step)
    EXPECT_FALSE(meter.on_submit(0, 0, step, kBegin + step));
  for (uint64_t step = 0; step < PlanMeter::kStepsOpenMax; ++step)
    EXPECT_TRUE(meter.on_submit(1, 0, step, kBegin + 100 + step));
  EXPECT_EQ(meter.steps(), PlanMeter::kStepsOpenMax);
  EXPECT_EQ(meter.last_step(), PlanMeter::kStepsOpenMax - 1);
}

TEST(PlanMeterRanksTest, RanksThatAreTooFarApartAreMeasuredWhenTheyMeetAgain) {
  PlanMeter meter(1, 2);
  for (uint64_t step = 0; step < 20; ++step) meter.on_submit(0, 0, step, kBegin + step);
  uint64_t complete = 0;
  for (uint64_t step = 0; step < 20; ++step)
    complete += meter.on_submit(1, 0, step, kBegin + 100 + step) ? 1 : 0;
  EXPECT_EQ(meter.steps(), complete);
  EXPECT_LE(complete, PlanMeter::kStepsOpenMax);
  for (uint64_t step = 20; step < 25; ++step) {
    EXPECT_FALSE(meter.on_submit(0, 0, step, kBegin + 200 + step));
    EXPECT_TRUE(meter.on_submit(1, 0, step, kBegin + 200 + step));
  }
  EXPECT_EQ(meter.steps(), complete + 5);
}

}  // namespace
}  // namespace braid

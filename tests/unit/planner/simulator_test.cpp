// SPDX-License-Identifier: Apache-2.0
#include "planner/simulator.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

SimulatorOptions with_streams(uint32_t streams) {
  SimulatorOptions options;
  options.streams = streams;
  return options;
}

TEST(SimulatorTest, OneStreamIsThePapersRecurrenceToTheLastBit) {
  Instances instances(10);
  for (int i = 0; i < 1000; ++i) {
    const Workload workload = instances.real_workload(100);
    const Plan plan = instances.plan(workload, 1);
    const LinearCost cost = instances.real_cost();
    double end = 0;
    for (const Plan::Group& group : plan.groups) {
      double bytes = 0;
      for (uint32_t t = group.begin; t < group.end; ++t) {
        bytes += static_cast<double>(workload.tensors[t].bytes);
      }
      const double ready = workload.tensors[group.end - 1].ready_seconds;
      end = std::max(end, ready) + (cost.startup_seconds + cost.seconds_per_byte * bytes);
    }
    const Timeline timeline = simulate(workload, plan, LinearCostModel(cost));
    ASSERT_EQ(timeline.units.back().end_seconds, end);
    ASSERT_EQ(timeline.iteration_seconds, workload.forward_seconds + end);
    ASSERT_EQ(timeline.exposed_seconds, end - workload.backward_seconds());
  }
}

TEST(SimulatorTest, AUnitIsDescribedByItsGroupAndPiece) {
  const Workload workload{{{1, 10}, {2, 5}}};
  const Timeline timeline = simulate(workload, {{{0, 1, 2}, {1, 2}}}, LinearCostModel({1, 1}));
  ASSERT_EQ(timeline.units.size(), 3u);
  EXPECT_EQ(timeline.units[1].group, 0u);
  EXPECT_EQ(timeline.units[1].piece, 1u);
  EXPECT_EQ(timeline.units[1].start_seconds, 7);
  EXPECT_EQ(timeline.units[1].end_seconds, 13);
  EXPECT_EQ(timeline.units[2].group, 1u);
  EXPECT_EQ(timeline.units[2].end_seconds, 19);
}

// Two all-reduces at once cost a + 1.5·b·M each (ASC-WFBP).
TEST(SimulatorTest, SimultaneousTransfersSlowEachOtherDown) {
  const Workload workload{{{0, 10}, {0, 10}}};
  const LinearCostModel cost({2, 1}, 1.5);
  const Timeline timeline = simulate(workload, {{{0, 1}, {1, 2}}}, cost, with_streams(2));
  EXPECT_DOUBLE_EQ(timeline.units[0].end_seconds, 2 + 15);
  EXPECT_DOUBLE_EQ(timeline.units[1].end_seconds, 2 + 15);
}

TEST(SimulatorTest, CommunicationThatBackwardHidesIsNotExposed) {
  Workload workload{{{1, 10}, {20, 0}}};
  workload.forward_seconds = 5;
  const Timeline timeline = simulate(workload, {{{0, 1}, {1, 2}}}, LinearCostModel({0, 1}));
  EXPECT_EQ(timeline.backward_seconds, 20);
  EXPECT_EQ(timeline.iteration_seconds, 25);
  EXPECT_EQ(timeline.exposed_seconds, 0);
}

TEST(SimulatorTest, NothingTakesTheForwardPass) {
  Workload workload;
  workload.forward_seconds = 5;
  const Timeline timeline = simulate(workload, {}, LinearCostModel({1, 1}), with_streams(4));
  EXPECT_TRUE(timeline.units.empty());
  EXPECT_EQ(timeline.iteration_seconds, 5);
}

TEST(SimulatorTest, MoreStreamsThanUnitsAreNoHarm) {
  const Workload workload{{{1, 10}}};
  const LinearCostModel cost({1, 1});
  EXPECT_EQ(iteration_seconds(workload, {{{0, 1}}}, cost, UINT32_MAX), 12);
}

class StragglerTest : public ::testing::Test {
 protected:
  StragglerTest() {
    for (int i = 1; i <= 100; ++i) workload_.tensors.push_back({i * 0.01, 1000});
    plan_ = plan_by("wfbp", workload_, cost_);
    options_.workers = 8;
  }
  Timeline run() const { return simulate(workload_, plan_, cost_, options_); }

  Workload workload_;
  LinearCostModel cost_{{1e-3, 1e-9}};
  Plan plan_;
  SimulatorOptions options_;
};

TEST_F(StragglerTest, WorkersThatAreAlikeChangeNothing) {
  const Timeline timeline = run();
  for (size_t i = 0; i < workload_.tensors.size(); ++i) {
    EXPECT_EQ(timeline.ready_seconds[i], workload_.tensors[i].ready_seconds);
  }
}

TEST_F(StragglerTest, TheSlowestWorkerDecides) {
  options_.straggle = 0.5;
  options_.workers = 1;
  const double one = run().backward_seconds;
  EXPECT_GE(one, 1);
  EXPECT_LE(one, 1.5);
  options_.workers = 200;
  EXPECT_GT(run().backward_seconds, 1.48);
  EXPECT_LE(run().backward_seconds, 1.5);
}

TEST_F(StragglerTest, ReadyTimesNeverDecrease) {
  options_.straggle = 0.3;
  options_.jitter = 0.9;
  const Timeline timeline = run();
  EXPECT_TRUE(std::is_sorted(timeline.ready_seconds.begin(), timeline.ready_seconds.end()));
  EXPECT_EQ(timeline.backward_seconds, timeline.ready_seconds.back());
}

TEST_F(StragglerTest, ASeedIsARun) {
  options_.jitter = 0.2;
  const Timeline first = run();
  EXPECT_EQ(run().ready_seconds, first.ready_seconds);
  options_.seed = 2;
  EXPECT_NE(run().ready_seconds, first.ready_seconds);
}

// The same on every machine.
TEST_F(StragglerTest, TheSeedsNumbersAreFixed) {
  options_.workers = 1;
  options_.straggle = 1;
  const double pace = run().backward_seconds;
  EXPECT_NEAR(pace, 1 + static_cast<double>(0x910a2dec89025cc1ULL >> 11) * 0x1p-53, 1e-12);
}

TEST(SimulatorTest, PlaysAHundredThousandTensors) {
  Instances instances(11);
  Workload workload;
  double ready = 0;
  for (int i = 0; i < 100'000; ++i) {
    workload.tensors.push_back({ready += instances.real(0, 1e-4), instances.below(200'000)});
  }
  const LinearCostModel cost({1e-4, 1e-9}, 1.5);
  const Plan plan = plan_by("wfbp", workload, cost);
  const Timeline timeline = simulate(workload, plan, cost, with_streams(64));
  EXPECT_EQ(timeline.units.size(), 100'000u);
  EXPECT_LT(timeline.iteration_seconds, iteration_seconds(workload, plan, cost, 1));
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "planner/sharded_step.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

// Backward: 3 s for the last layer, 1 s for the first; forward: 2 s, of which the first layer has a
// quarter.
Workload two_layers() { return {{{3, 4}, {4, 2}}, 2}; }
const Plan kEachAlone{{{0, 1}, {1, 2}}};

TEST(ShardedStepTest, ForwardWaitsForTheParametersOfEachLayer) {
  // The last layer is sent from 3 to 7, the first one from 7 to 9. Forward waits from 4 to 9.
  const Timeline one = simulate_sharded(two_layers(), kEachAlone, LinearCostModel({0, 1}));
  EXPECT_DOUBLE_EQ(one.units[0].end_seconds, 7);
  EXPECT_DOUBLE_EQ(one.units[1].end_seconds, 9);
  EXPECT_DOUBLE_EQ(one.iteration_seconds, 11);
  EXPECT_DOUBLE_EQ(one.exposed_seconds, 5);
}

TEST(ShardedStepTest, WhatForwardNeedsFirstGoesFirst) {
  // All three are ready while the first of them travels, from 1 to 11.
  const Workload workload{{{1, 10}, {2, 3}, {4, 1}}, 4};
  const Plan plan{{{0, 1}, {1, 2}, {2, 3}}};
  const Timeline one = simulate_sharded(workload, plan, LinearCostModel({0, 1}));
  ASSERT_EQ(one.units.size(), 3u);
  EXPECT_EQ(one.units[1].group, 2u);
  EXPECT_DOUBLE_EQ(one.units[1].end_seconds, 12);
  EXPECT_EQ(one.units[2].group, 1u);
  EXPECT_DOUBLE_EQ(one.units[2].end_seconds, 15);
  // Forward has 2 s for the first layer (12 to 14), and from 15 on 1 s for each of the others.
  EXPECT_DOUBLE_EQ(one.iteration_seconds, 17);
}

TEST(ShardedStepTest, PiecesOfAGroupGiveWayToAMoreUrgentOne) {
  const Workload workload{{{1, 8}, {2, 2}}, 0};
  const Timeline one = simulate_sharded(workload, {{{0, 1, 4}, {1, 2}}}, LinearCostModel({0, 1}));
  ASSERT_EQ(one.units.size(), 5u);
  std::vector<uint32_t> groups;
  for (const Timeline::Unit& unit : one.units) groups.push_back(unit.group);
  EXPECT_EQ(groups, (std::vector<uint32_t>{0, 1, 0, 0, 0}));
}

TEST(ShardedStepTest, TwoStreamsStartTheMostUrgentOfThoseThatWait) {
  const Workload workload{{{0, 10}, {0, 10}, {1, 5}, {2, 1}}, 0};
  const Plan plan{{{0, 1}, {1, 2}, {2, 3}, {3, 4}}};
  SimulatorOptions options;
  options.streams = 2;
  const Timeline one = simulate_sharded(workload, plan, LinearCostModel({0, 1}, 1), options);
  ASSERT_EQ(one.units.size(), 4u);
  // At 0 the first two are ready, the later one of them is the more urgent one. Both end at 10.
  EXPECT_EQ(one.units[0].group, 1u);
  EXPECT_EQ(one.units[1].group, 0u);
  EXPECT_EQ(one.units[2].group, 3u);
  EXPECT_DOUBLE_EQ(one.units[2].end_seconds, 11);
  EXPECT_EQ(one.units[3].group, 2u);
  EXPECT_DOUBLE_EQ(one.units[3].end_seconds, 15);
}

TEST(ShardedStepTest, NothingToSendTakesTheForwardPass) {
  Workload workload;
  workload.forward_seconds = 5;
  EXPECT_EQ(simulate_sharded(workload, {}, LinearCostModel({1, 1})).iteration_seconds, 5);
}

TEST(ShardedStepTest, IsNeverLongerThanASynchronousStepOnOneStream) {
  Instances instances(31);
  for (int i = 0; i < 1000; ++i) {
    const Workload workload = instances.real_workload(60);
    const Plan plan = instances.plan(workload, 3);
    const LinearCostModel cost(instances.real_cost());
    const Timeline synchronous = simulate(workload, plan, cost);
    const Timeline sharded = simulate_sharded(workload, plan, cost);
    ASSERT_LE(sharded.iteration_seconds, synchronous.iteration_seconds * (1 + 1e-12));
    ASSERT_GE(sharded.iteration_seconds, workload.forward_seconds + workload.backward_seconds());
  }
}

// Time slice by time slice, in whole numbers: what is free takes the most urgent unit that waits.
TEST(ShardedStepTest, IsWhatASlowerSimulationSays) {
  Instances instances(32);
  for (int i = 0; i < 500; ++i) {
    const Workload workload = instances.whole_workload(8);
    const LinearCost cost = instances.whole_cost();
    const Plan plan = instances.plan(workload, 1);
    std::vector<double> end(plan.groups.size(), -1);
    double free = 0;
    for (size_t left = plan.groups.size(); left > 0; ++free) {
      for (size_t group = plan.groups.size(); group-- > 0;) {
        const Plan::Group& members = plan.groups[group];
        if (end[group] >= 0 || workload.tensors[members.end - 1].ready_seconds > free) continue;
        double bytes = 0;
        for (uint32_t t = members.begin; t < members.end; ++t) {
          bytes += static_cast<double>(workload.tensors[t].bytes);
        }
        free += cost.seconds(bytes);
        end[group] = free;
        --left;
        group = plan.groups.size();  // again from the most urgent one
      }
    }
    const Timeline timeline = simulate_sharded(workload, plan, LinearCostModel(cost));
    for (const Timeline::Unit& unit : timeline.units) {
      ASSERT_EQ(unit.end_seconds, end[unit.group]) << "instance " << i;
    }
    // Layer by layer.
    double now = workload.backward_seconds();
    for (size_t t = workload.tensors.size(); t-- > 0;) {
      const auto group = std::ranges::find_if(
          plan.groups, [t](const Plan::Group& one) { return t < one.end && t >= one.begin; });
      now = std::max(now, end[static_cast<size_t>(group - plan.groups.begin())]);
      const double before = t == 0 ? 0 : workload.tensors[t - 1].ready_seconds;
      const double backward = workload.backward_seconds();
      const double share = backward > 0 ? (workload.tensors[t].ready_seconds - before) / backward
                                        : 1.0 / static_cast<double>(workload.tensors.size());
      now += workload.forward_seconds * share;
    }
    ASSERT_NEAR(timeline.iteration_seconds, now, 1e-9) << "instance " << i;
  }
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/explained_job.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// `count` tensors of so many floats that become ready one after the other within 60 ms, each a
// group of its own; an all-reduce takes 5 ms and 10 ns a byte.
LiveSet one_by_one(size_t count, uint64_t numel) {
  LiveSet set;
  set.plan = 7;
  set.planner = "wfbp";
  set.steps_measured = 20;
  set.trace.forward_seconds = 0.03;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "layer" + std::to_string(i);
    set.trace.tensors.push_back(
        {name, numel, DataType::Float32, 0.06 / static_cast<double>(count)});
    set.groups.insert(set.groups.begin(), {name});
  }
  auto cost = FittedCost::create({{1, 100'000'000, {0.005, 1e-8}, 8, 0}}, {});
  EXPECT_TRUE(cost) << cost.status().message();
  set.cost = *cost;
  return set;
}

TEST(ExplainPlan, APlanThatLeavesMoreExposedThanAnotherIsSaidSo) {
  ExplainedJob job;
  job.expose_ms(100);
  job.plan() = one_by_one(30, 10'000);
  const Finding plan = job.find(Cause::Plan);
  EXPECT_GT(plan.seconds_per_step, 0.05);
  EXPECT_THAT(plan.text, HasSubstr("Plan 7 (planner wfbp, 30 groups) leaves"));
  EXPECT_THAT(plan.advice, HasSubstr("set plan.planner to streams"));
}

TEST(ExplainPlan, WhereNoPlansAreMadeWhatFlowsDeliverSaysWhatOneWouldBring) {
  ExplainedJob job;
  job.expose_ms(100);
  job.add_flows(4, 50e6);
  job.plan() = one_by_one(4, 500'000);
  LiveSet& set = *job.plan();
  set.nodes = 3;
  set.cost.reset();
  set.groups = {{"layer3"}, {"layer2", "layer1", "layer0"}};
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network)) << "the coordinator says nothing";
  job.node(0).planner = "streams";
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network)) << "it will say a plan";
  job.node(0).planner = "first";
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network, Cause::Plan));
  const auto explanation = job.explain();
  EXPECT_NEAR(explanation->findings[0].seconds_per_step + explanation->findings[1].seconds_per_step,
              explanation->exposed_seconds, 1e-9);
}

TEST(ExplainPlan, AGoodPlanIsNotSpokenOf) {
  ExplainedJob job;
  job.expose_ms(100);
  job.plan() = one_by_one(1, 1'000'000);
  EXPECT_THAT(job.causes(), Not(Contains(Cause::Plan)));
}

TEST(ExplainPlan, OperationsThatAreMostlyStartupAreSmall) {
  ExplainedJob job;
  job.expose_ms(10);
  job.plan() = one_by_one(1, 3'000);
  EXPECT_THAT(job.causes(), ElementsAre(Cause::SmallMessages));
  EXPECT_THAT(job.find(Cause::SmallMessages).text,
              HasSubstr("A step's gradients are 11.7 KiB in 1 operations, so 98 % of their time is "
                        "startup"));
}

TEST(ExplainPlan, WithoutACostTheirSizeSaysWhatIsSmall) {
  ExplainedJob job;
  job.expose_ms(10);
  job.plan() = one_by_one(1, 3'000);
  job.plan()->cost.reset();
  EXPECT_THAT(job.causes(), ElementsAre(Cause::SmallMessages));
  job.plan() = one_by_one(1, 3'000'000);
  job.plan()->cost.reset();
  EXPECT_THAT(job.causes(), ElementsAre(Cause::Network));
}

}  // namespace
}  // namespace braid::testing

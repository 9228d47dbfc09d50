// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan_decision.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Groups = std::vector<std::vector<uint64_t>>;

PlanReport report(std::vector<uint64_t> ready_ns, uint64_t count = 1000) {
  PlanReport result;
  result.ready_ns = std::move(ready_ns);
  for (uint64_t i = 0; i < result.ready_ns.size(); ++i) {
    result.tensors.push_back(100 + i);
    result.counts.push_back(count);
    result.dtypes.push_back(DataType::Float32);
  }
  result.forward_ns = 1'000'000;
  return result;
}

// T(M) = startup + 1 ns per byte.
std::vector<CostMeasurement> measurements(double startup_seconds) {
  std::vector<CostMeasurement> result;
  for (uint64_t bytes = 1000; bytes <= 1'000'000; bytes *= 10)
    result.push_back({bytes, startup_seconds + 1e-9 * static_cast<double>(bytes), 1});
  return result;
}

class PlanDecisionTest : public ::testing::Test {
 protected:
  Result<PlanDecision> decide(const std::vector<PlanReport>& reports, double startup_seconds,
                              const Groups& current = {}, const char* planner = "streams") {
    PlanningOptions options;
    options.planner = *find_planner(planner);
    options.streams = 1;
    return decide_plan(reports, measurements(startup_seconds), current, {}, options);
  }
};

TEST_F(PlanDecisionTest, WhatCostsMuchToStartIsMerged) {
  const auto decision = decide({report({0, 1000, 2000, 3000})}, 1e-3);
  ASSERT_TRUE(decision.is_ok()) << decision.status().message();
  EXPECT_EQ(decision->groups, (Groups{{100, 101, 102, 103}}));
  EXPECT_LT(decision->predicted_seconds, decision->current_seconds);  // all by themselves
  EXPECT_FALSE(decision->cost.bands().empty());
}

TEST_F(PlanDecisionTest, WhatBecomesReadyLateIsNotWaitedFor) {
  const auto decision = decide({report({0, 10'000'000, 20'000'000})}, 1e-6);
  ASSERT_TRUE(decision.is_ok());
  EXPECT_EQ(decision->groups, (Groups{{100}, {101}, {102}}));
}

TEST_F(PlanDecisionTest, ATensorIsReadyWhenTheSlowestNodeHasIt) {
  // On each node another tensor is the late one; merged, 101 is last and 100 and 102 come together.
  const auto decision =
      decide({report({1'000, 50'000'000, 0}), report({2'000, 3'000, 4'000})}, 1e-4);
  ASSERT_TRUE(decision.is_ok());
  EXPECT_EQ(decision->groups, (Groups{{100, 102}, {101}}));
}

TEST_F(PlanDecisionTest, TheSlowestNodesForwardPassCounts) {
  PlanReport slow = report({0, 1000});
  slow.forward_ns = 80'000'000;
  const auto alone = decide({report({0, 1000})}, 1e-4);
  const auto both = decide({report({0, 1000}), slow}, 1e-4);
  ASSERT_TRUE(alone.is_ok() && both.is_ok());
  EXPECT_NEAR(both->predicted_seconds - alone->predicted_seconds, 0.079, 1e-6);
}

TEST_F(PlanDecisionTest, GroupsFollowReadinessAndNotRegistration) {
  const auto decision = decide({report({30, 20, 10, 0})}, 1e-3);
  ASSERT_TRUE(decision.is_ok());
  EXPECT_EQ(decision->groups, (Groups{{103, 102, 101, 100}}));
}

TEST_F(PlanDecisionTest, GroupsArePartedByDtypeAndCodec) {
  PlanReport mixed = report({0, 1, 2, 3, 4});
  mixed.dtypes = {DataType::Float32, DataType::Float32, DataType::Float16, DataType::Float16,
                  DataType::Float32};
  const auto decision = decide({mixed}, 1e-3, {}, "single");
  ASSERT_TRUE(decision.is_ok());
  EXPECT_EQ(decision->groups, (Groups{{100, 101, 104}, {102, 103}}));
  mixed.codecs = {7, 0, 0, 0, 7};
  const auto coded = decide({mixed}, 1e-3, {}, "single");
  ASSERT_TRUE(coded.is_ok());
  EXPECT_EQ(coded->groups, (Groups{{100, 104}, {101}, {102, 103}}));
}

TEST_F(PlanDecisionTest, WhatWasMeasuredIsWhatTravels) {
  PlanReport factors = report({3'000, 1'000});
  factors.dtypes[0] = DataType::BFloat16;
  factors.beside = {{7, 50, 0.5}};
  const auto decision = decide({factors}, 1e-3);
  ASSERT_TRUE(decision.is_ok());
  const SetMeasured& measured = *decision->measured;
  ASSERT_EQ(measured.tensors.size(), 2u);
  EXPECT_EQ(measured.tensors[0].hash, 100u);
  EXPECT_EQ(measured.tensors[0].bytes, 2000u);
  EXPECT_EQ(measured.tensors[1].bytes, 4000u);
  EXPECT_DOUBLE_EQ(measured.tensors[1].ready_seconds, 1e-6);
  EXPECT_DOUBLE_EQ(measured.last_ready_seconds, 3e-6);
  EXPECT_EQ(measured.beside, factors.beside);
}

TEST_F(PlanDecisionTest, ThePlanThatHoldsIsPredictedFromTheSameMeasurements) {
  const std::vector<PlanReport> reports = {report({0, 1000, 2000, 3000})};
  const auto first = decide(reports, 1e-3);
  ASSERT_TRUE(first.is_ok());
  const auto again = decide(reports, 1e-3, first->groups);
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(again->groups, first->groups);
  EXPECT_DOUBLE_EQ(again->current_seconds, again->predicted_seconds);
}

TEST_F(PlanDecisionTest, EveryPlannersPlanHoldsEveryTensorOnce) {
  PlanReport mixed = report({});
  for (uint64_t i = 0; i < 50; ++i) {
    mixed.tensors.push_back(i);
    mixed.counts.push_back(i * i * 100);
    mixed.dtypes.push_back(i % 7 == 0 ? DataType::Float16 : DataType::Float32);
    mixed.ready_ns.push_back((i * 37 % 50) * 100'000);
  }
  for (const Planner* planner : planners()) {
    const auto decision = decide({mixed}, 1e-4, {}, std::string(planner->name()).c_str());
    ASSERT_TRUE(decision.is_ok()) << planner->name();
    std::vector<uint64_t> all;
    for (const auto& group : decision->groups) {
      for (const uint64_t hash : group) {
        EXPECT_EQ(mixed.dtypes[hash], mixed.dtypes[group.front()]) << planner->name();
        all.push_back(hash);
      }
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, mixed.tensors) << planner->name();
  }
}

TEST_F(PlanDecisionTest, NodesThatContradictEachOtherAreAnError) {
  PlanReport other_tensors = report({0, 1}), other_counts = report({0, 1}, 7),
             other_dtypes = report({0, 1});
  other_tensors.tensors[1] = 5;
  other_dtypes.dtypes[0] = DataType::Float16;
  for (const PlanReport& other : {other_tensors, other_counts, other_dtypes, report({0, 1, 2})}) {
    const auto decision = decide({report({0, 1}), other}, 1e-4);
    ASSERT_FALSE(decision.is_ok());
    EXPECT_EQ(decision.status().message(), "nodes report different tensors for one set");
  }
}

// Four streams hide what units wait for, but not what the processors do for each.
TEST_F(PlanDecisionTest, TheBeginningOfAStartupDoesNotOverlap) {
  const PlanReport reports[] = {report(std::vector<uint64_t>(40, 0))};
  PlanningOptions options;
  options.planner = *find_planner("streams");
  options.streams = 4;
  const auto each_by_itself = [&](double startup_seconds) {
    const auto decision = decide_plan(reports, measurements(startup_seconds), {}, {}, options);
    EXPECT_TRUE(decision.is_ok()) << decision.status().message();
    EXPECT_LT(decision->groups.size(), 5u);
    return decision->current_seconds;
  };
  EXPECT_GT(each_by_itself(1e-4), 40 * 1e-4);
  EXPECT_GT(each_by_itself(1e-2), 40 * 2e-4 + 10 * (1e-2 - 2e-4) - 1e-2);
  EXPECT_LT(each_by_itself(1e-2), 40 * 2e-4 + 10 * 1e-2 + 1e-2);
}

TEST_F(PlanDecisionTest, WithTooFewMeasurementsThereIsNoPlan) {
  const PlanReport reports[] = {report({0, 1})};
  PlanningOptions options;
  options.planner = *find_planner("streams");
  EXPECT_FALSE(decide_plan(reports, {}, {}, {}, options).is_ok());
  const std::vector<CostMeasurement> same_size(10, CostMeasurement{1000, 1e-3, 1});
  EXPECT_FALSE(decide_plan(reports, same_size, {}, {}, options).is_ok());
}

}  // namespace
}  // namespace braid

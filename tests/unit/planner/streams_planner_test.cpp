// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "planner/stream_search.h"
#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

PlannerOptions planned_with(uint32_t streams) {
  PlannerOptions options;
  options.streams = streams;
  return options;
}

// Than `streams`; then the test goes on.
bool no_other_is_better(const Workload& workload, const CostModel& cost,
                        const PlannerOptions& options) {
  const auto seconds_by = [&](const Planner& planner) {
    return iteration_seconds(workload, planner.plan(workload, cost, options), cost,
                             options.streams);
  };
  const double seconds = seconds_by(**find_planner("streams"));
  for (const Planner* planner : planners()) {
    if (seconds <= seconds_by(*planner)) continue;
    ADD_FAILURE() << planner->name() << " is better";
    return false;
  }
  return true;
}

TEST(StreamsPlannerTest, NoOtherPlannerIsEverBetter) {
  Instances instances(13);
  for (int i = 0; i < 400; ++i) {
    const Workload workload = instances.real_workload(30);
    const LinearCostModel cost(instances.real_cost(), instances.real(1, 2));
    const auto streams = static_cast<uint32_t>(2 + instances.below(4));
    ASSERT_TRUE(no_other_is_better(workload, cost, planned_with(streams))) << "instance " << i;
  }
}

TEST(StreamsPlannerTest, NoOtherPlannerIsEverBetterWhereTheCostIsNotLinear) {
  Instances instances(14);
  for (int i = 0; i < 400; ++i) {
    const Workload workload = instances.whole_workload(20);
    const TableCost cost = instances.table_cost(100);
    PlannerOptions options = planned_with(static_cast<uint32_t>(2 + instances.below(4)));
    options.piece_bytes_min = 2;
    ASSERT_TRUE(no_other_is_better(workload, cost, options)) << "instance " << i;
  }
}

TEST(StreamsPlannerTest, NoOtherPlannerIsEverBetterWhereTheCostHasBands) {
  Instances instances(19);
  for (int i = 0; i < 200; ++i) {
    const Workload workload = instances.real_workload(20);
    const FittedCost cost = instances.real_bands(8);
    PlannerOptions options = planned_with(static_cast<uint32_t>(2 + instances.below(15)));
    options.fewest_groups = instances.below(2) == 0;
    ASSERT_TRUE(no_other_is_better(workload, cost, options)) << "instance " << i;
  }
}

TEST(StreamsPlannerTest, OneStreamsPlanIsTheExactOne) {
  Instances instances(15);
  for (int i = 0; i < 200; ++i) {
    const Workload workload = instances.real_workload(50);
    const LinearCostModel cost(instances.real_cost());
    ASSERT_EQ(plan_by("streams", workload, cost), plan_by("exact", workload, cost));
  }
}

// One transfer alone fills half of the network: two halves at once take 3/4 of the time.
TEST(StreamsPlannerTest, SplitsATensorWhereOneTransferDoesNotFillTheNetwork) {
  const Workload workload{{{1, 100 << 20}}};
  const LinearCostModel cost({1e-3, 1e-9}, 1.5);
  const Plan plan = plan_by("streams", workload, cost, planned_with(2));
  EXPECT_EQ(plan.groups, (std::vector<Plan::Group>{{0, 1, 2}}));
  EXPECT_NEAR(iteration_seconds(workload, plan, cost, 2), 1 + 1e-3 + 0.75 * 0.1048576, 1e-9);
}

TEST(StreamsPlannerTest, SplitsNothingWhereOneTransferFillsTheNetwork) {
  const Workload workload{{{1, 100 << 20}}};
  const LinearCostModel cost({1e-3, 1e-9}, 2);
  const Plan plan = plan_by("streams", workload, cost, planned_with(4));
  EXPECT_EQ(plan.groups, (std::vector<Plan::Group>{{0, 1, 1}}));
}

TEST(StreamsPlannerTest, NoPieceIsSmallerThanItMayBe) {
  Instances instances(16);
  for (int i = 0; i < 200; ++i) {
    const Workload workload = instances.real_workload(20);
    const LinearCostModel cost(instances.real_cost(), 1.1);
    PlannerOptions options = planned_with(8);
    options.piece_bytes_min = 1 << 20;
    for (const Plan::Group& group : plan_by("streams", workload, cost, options).groups) {
      uint64_t bytes = 0;
      for (uint32_t t = group.begin; t < group.end; ++t) bytes += workload.tensors[t].bytes;
      if (group.pieces == 1) continue;
      ASSERT_GE(bytes / group.pieces, options.piece_bytes_min);
    }
  }
}

// An embedding at the end of backward is the long pole; nothing that was sent before helps.
TEST(StreamsPlannerTest, CutsTheLongPole) {
  Workload workload;
  for (int i = 1; i <= 20; ++i) workload.tensors.push_back({i * 10e-3, 1 << 20});
  workload.tensors.push_back({0.21, 100 << 20});
  const LinearCostModel cost({1e-3, 1e-9}, 1.2);
  const Plan plan = plan_by("streams", workload, cost, planned_with(4));
  EXPECT_GE(plan.groups.back().pieces, 4u);
  const Plan exact = plan_by("exact", workload, cost);
  EXPECT_LT(iteration_seconds(workload, plan, cost, 4),
            0.9 * iteration_seconds(workload, exact, cost, 4));
}

// Local search finds what no other planner does: with four streams the startups overlap.
TEST(StreamsPlannerTest, IsOftenBetterThanAnyOther) {
  Instances instances(17);
  int better = 0;
  for (int i = 0; i < 100; ++i) {
    const Workload workload = instances.real_workload(40);
    const LinearCostModel cost({1e-3, 1e-9}, 1.5);
    const Plan plan = plan_by("streams", workload, cost, planned_with(4));
    double others = 1e300;
    for (const Planner* planner : planners()) {
      if (planner->name() == "streams") continue;
      const Plan other = planner->plan(workload, cost, planned_with(4));
      others = std::min(others, iteration_seconds(workload, other, cost, 4));
    }
    if (iteration_seconds(workload, plan, cost, 4) < 0.99 * others) ++better;
  }
  EXPECT_GT(better, 30);
}

// More groups than the search changes.
TEST(StreamsPlannerTest, PlansForManyTensorsInBoundedTime) {
  Instances instances(18);
  Workload workload;
  double ready = 0;
  for (int i = 0; i < 20'000; ++i) {
    workload.tensors.push_back({ready += instances.real(0, 4e-4), instances.below(200'000)});
  }
  const LinearCostModel cost({1e-4, 1e-9}, 1.5);
  PlannerOptions options = planned_with(4);
  for (const bool fewest : {true, false}) {
    options.fewest_groups = fewest;
    const Plan plan = plan_by("streams", workload, cost, options);
    ASSERT_TRUE(check_plan(plan, workload.tensors.size()).is_ok());
    EXPECT_TRUE(fewest || plan.groups.size() > 2 * StreamSearch::kGroupsMax);
    EXPECT_LE(iteration_seconds(workload, plan, cost, 4),
              iteration_seconds(workload, plan_by("exact", workload, cost), cost, 4));
  }
}

}  // namespace
}  // namespace braid

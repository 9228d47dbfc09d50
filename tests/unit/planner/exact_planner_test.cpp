// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

struct Best {
  double end_seconds = 1e300;
  size_t groups = 0;
  bool operator==(const Best&) const = default;
};

// All 2^(L−1) plans.
class BruteForce {
 public:
  BruteForce(const Workload& workload, const CostModel& cost) : workload_(workload), cost_(cost) {
    extend(0, 0, 0);
  }
  const Best& best() const { return best_; }

 private:
  void extend(size_t begin, double end, size_t groups) {
    if (begin == workload_.tensors.size()) {
      if (end < best_.end_seconds || (end == best_.end_seconds && groups < best_.groups)) {
        best_ = {end, groups};
      }
      return;
    }
    uint64_t bytes = 0;
    for (size_t i = begin; i < workload_.tensors.size(); ++i) {
      bytes += workload_.tensors[i].bytes;
      const double start = std::max(end, workload_.tensors[i].ready_seconds);
      extend(i + 1, start + cost_.seconds(bytes), groups + 1);
    }
  }

  const Workload& workload_;
  const CostModel& cost_;
  Best best_;
};

Best exact(const Workload& workload, const CostModel& cost) {
  const Plan plan = plan_by("exact", workload, cost);
  const Timeline timeline = simulate(workload, plan, cost);
  return {timeline.units.back().end_seconds, plan.groups.size()};
}

TEST(ExactPlannerTest, FindsWhatBruteForceFindsInWholeNumbers) {
  Instances instances(2);
  for (int i = 0; i < 10'000; ++i) {
    const Workload workload = instances.whole_workload(14);
    const LinearCost cost = instances.whole_cost();
    const Best expected = BruteForce(workload, OpaqueCost(cost)).best();
    const Best linear = exact(workload, LinearCostModel(cost));
    const Best any = exact(workload, OpaqueCost(cost));
    ASSERT_EQ(linear, expected) << "instance " << i;
    ASSERT_EQ(any, expected) << "instance " << i;
  }
}

TEST(ExactPlannerTest, FindsWhatBruteForceFindsInRealNumbers) {
  Instances instances(3);
  for (int i = 0; i < 4000; ++i) {
    const Workload workload = instances.real_workload(12);
    const LinearCost cost = instances.real_cost();
    const Best expected = BruteForce(workload, OpaqueCost(cost)).best();
    // Without the rounding of the linear path's keys, the very same additions are compared.
    const Best any = exact(workload, OpaqueCost(cost));
    ASSERT_EQ(any, expected) << "instance " << i;
    ASSERT_NEAR(exact(workload, LinearCostModel(cost)).end_seconds, expected.end_seconds,
                1e-12 * expected.end_seconds)
        << "instance " << i;
  }
}

TEST(ExactPlannerTest, FindsWhatBruteForceFindsForAnyMonotoneCost) {
  Instances instances(4);
  for (int i = 0; i < 4000; ++i) {
    const Workload workload = instances.whole_workload(12);
    const TableCost cost = instances.table_cost(60);
    const Best expected = BruteForce(workload, cost).best();
    const Best found = exact(workload, cost);
    ASSERT_EQ(found, expected) << "instance " << i;
  }
}

TEST(ExactPlannerTest, FindsWhatBruteForceFindsForBands) {
  Instances instances(9);
  for (int i = 0; i < 10'000; ++i) {
    const Workload workload = instances.whole_workload(12);
    const FittedCost cost = instances.whole_bands(6);
    const Best expected = BruteForce(workload, cost).best();
    const Best found = exact(workload, cost);
    ASSERT_EQ(found, expected) << "instance " << i;
  }
}

// The quadratic search, which looks at every prefix, breaks ties alike.
TEST(ExactPlannerTest, PlansForBandsAsIfTheyWereUnknown) {
  Instances instances(10);
  PlannerOptions earliest;
  earliest.fewest_groups = false;
  for (int i = 0; i < 5000; ++i) {
    const Workload workload = instances.whole_workload(100);
    const FittedCost cost = instances.whole_bands(8);
    const UnknownCost unknown(cost);
    ASSERT_EQ(plan_by("exact", workload, cost), plan_by("exact", workload, unknown))
        << "instance " << i;
    ASSERT_EQ(plan_by("exact", workload, cost, earliest),
              plan_by("exact", workload, unknown, earliest))
        << "instance " << i;
  }
}

TEST(ExactPlannerTest, PlansForBandsInRealNumbers) {
  Instances instances(11);
  for (int i = 0; i < 3000; ++i) {
    const Workload workload = instances.real_workload(100);
    const FittedCost cost = instances.real_bands(8);
    const Best expected = exact(workload, UnknownCost(cost));
    const Best found = exact(workload, cost);
    ASSERT_NEAR(found.end_seconds, expected.end_seconds, 1e-12 * expected.end_seconds)
        << "instance " << i;
    ASSERT_EQ(found.groups, expected.groups) << "instance " << i;
  }
}

// Layers 1, 2, 3 have t_b = 4, 3, 1 and p = 1, 1, 4: the paper's plan merges layer 3 into layer 2,
// and so delays layer 1, although each merge looks like a gain.
TEST(ExactPlannerTest, BeatsThePapersPlanOnTheCounterexample) {
  const Workload workload{{{1, 4}, {4, 1}, {8, 1}}};
  const LinearCostModel cost({4, 1});
  const Plan paper = plan_by("mgwfbp", workload, cost);
  EXPECT_EQ(ends_of(paper), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(iteration_seconds(workload, paper, cost), 18);
  const Plan best = plan_by("exact", workload, cost);
  EXPECT_EQ(ends_of(best), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(iteration_seconds(workload, best, cost), 15);
}

TEST(ExactPlannerTest, NoOtherPlannerIsEverBetterOnOneStream) {
  Instances instances(5);
  for (int i = 0; i < 4000; ++i) {
    const Workload workload = instances.real_workload(100);
    const LinearCost linear = instances.real_cost();
    const OpaqueCost any(linear);
    const double best = iteration_seconds(workload, plan_by("exact", workload, any), any);
    const LinearCostModel cost(linear);
    const double best_linear = iteration_seconds(workload, plan_by("exact", workload, cost), cost);
    ASSERT_NEAR(best_linear, best, 1e-12 * best) << "instance " << i;
    for (const Planner* planner : planners()) {
      const Plan plan = planner->plan(workload, any, {});
      ASSERT_LE(best, iteration_seconds(workload, plan, any))
          << planner->name() << ", instance " << i;
    }
  }
}

// Nobody waits for the first two tensors: one group instead of two ends later, but early enough.
TEST(ExactPlannerTest, MergesWhatNobodyWaitsFor) {
  const Workload workload{{{1, 1}, {3, 1}, {20, 1}}};
  const LinearCostModel cost({1, 1});
  EXPECT_EQ(ends_of(plan_by("exact", workload, cost)), (std::vector<uint32_t>{2, 3}));
}

TEST(ExactPlannerTest, OnRequestItsGroupsAreThroughAsEarlyAsPossible) {
  PlannerOptions options;
  options.fewest_groups = false;
  const Workload workload{{{1, 1}, {3, 1}, {20, 1}}};
  const LinearCostModel cost({1, 1});
  EXPECT_EQ(ends_of(plan_by("exact", workload, cost, options)), (std::vector<uint32_t>{1, 2, 3}));
}

TEST(ExactPlannerTest, BothTieBreaksAreOptimal) {
  Instances instances(7);
  PlannerOptions earliest;
  earliest.fewest_groups = false;
  for (int i = 0; i < 2000; ++i) {
    const Workload workload = instances.whole_workload(80);
    const LinearCostModel cost(instances.whole_cost());
    const Plan few = plan_by("exact", workload, cost);
    const Plan early = plan_by("exact", workload, cost, earliest);
    ASSERT_EQ(iteration_seconds(workload, few, cost), iteration_seconds(workload, early, cost));
    ASSERT_LE(few.groups.size(), early.groups.size());
  }
}

TEST(ExactPlannerTest, PlansForAHundredThousandTensors) {
  Instances instances(8);
  Workload workload;
  double ready = 0;
  for (int i = 0; i < 100'000; ++i) {
    workload.tensors.push_back({ready += instances.real(0, 2e-4), instances.below(200'000)});
  }
  const LinearCostModel linear({1e-4, 1e-9});
  const FittedCost bands = instances.real_bands(8);
  for (const CostModel* cost :
       {static_cast<const CostModel*>(&linear), static_cast<const CostModel*>(&bands)}) {
    const Plan plan = plan_by("exact", workload, *cost);
    EXPECT_TRUE(check_plan(plan, workload.tensors.size()).is_ok());
    EXPECT_LE(iteration_seconds(workload, plan, *cost),
              iteration_seconds(workload, plan_by("mgwfbp", workload, *cost), *cost));
  }
}

}  // namespace
}  // namespace braid

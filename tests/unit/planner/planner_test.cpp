// SPDX-License-Identifier: Apache-2.0
#include "planner/planner.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

using testing::is_error;

TEST(PlannerTest, AllAreListedInTheOrderOfTheDocuments) {
  std::vector<std::string_view> names;
  for (const Planner* planner : planners()) {
    names.push_back(planner->name());
    EXPECT_FALSE(planner->description().empty()) << planner->name();
    EXPECT_EQ(find_planner(planner->name()).value(), planner);
  }
  const std::vector<std::string_view> expected = {"wfbp", "single", "mgwfbp", "exact",  "streams",
                                                  "asc",  "dear",   "ddp",    "horovod"};
  EXPECT_EQ(names, expected);
}

TEST(PlannerTest, AnUnknownNamesErrorListsTheKnownOnes) {
  const auto found = find_planner("best");
  ASSERT_FALSE(found.is_ok());
  EXPECT_TRUE(is_error(found, StatusCode::NotFound,
                       {"'best'", "wfbp, single, mgwfbp, exact, streams, asc"}));
}

class EveryPlannerTest : public ::testing::TestWithParam<const Planner*> {
 protected:
  // Its plan is one, for one stream and for several, and for both kinds of cost.
  void expect_plan(const Workload& workload, LinearCost linear) {
    const LinearCostModel cost(linear, 1.5);
    const OpaqueCost any(linear);
    for (const uint32_t streams : {1, 3}) {
      PlannerOptions options;
      options.streams = streams;
      options.piece_bytes_min = 2;
      const Plan plan = GetParam()->plan(workload, cost, options);
      const Plan other = GetParam()->plan(workload, any, options);
      EXPECT_EQ(check_plan(plan, workload.tensors.size()).to_string(), "OK");
      EXPECT_EQ(check_plan(other, workload.tensors.size()).to_string(), "OK");
      EXPECT_EQ(GetParam()->plan(workload, cost, options), plan) << "pure";
      EXPECT_TRUE(std::isfinite(iteration_seconds(workload, plan, cost, streams)));
    }
  }
};

TEST_P(EveryPlannerTest, PlansNothingForNoTensors) {
  expect_plan({}, {1, 1});
  EXPECT_TRUE(GetParam()->plan({}, LinearCostModel({1, 1}), {}).groups.empty());
}

TEST_P(EveryPlannerTest, PlansForWhatIsSeldom) {
  expect_plan({{{1, 100}}}, {1, 1});
  expect_plan({{{0, 0}}}, {0, 0});
  expect_plan({{{1, 0}, {2, 0}, {3, 0}}}, {1, 1});            // tensors without bytes
  expect_plan({{{0, 5}, {0, 100}, {0, 5}, {0, 0}}}, {1, 1});  // ready at once
  expect_plan({{{7, 5}, {7, 100}, {7, 5}, {7, 0}}}, {1, 1});
  for (const LinearCost& cost : {LinearCost{0, 1}, {1, 0}, {0, 0}})
    expect_plan({{{1, 5}, {2, 100}, {3, 5}, {4, 0}}}, cost);
}

TEST_P(EveryPlannerTest, PlansForAnything) {
  Instances instances(9);
  for (int i = 0; i < 200; ++i) {
    expect_plan(instances.whole_workload(30), instances.whole_cost());
    expect_plan(instances.real_workload(30), instances.real_cost());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPlannerTest,
                         ::testing::ValuesIn(planners().begin(), planners().end()),
                         [](const auto& planner) { return std::string(planner.param->name()); });

}  // namespace
}  // namespace braid

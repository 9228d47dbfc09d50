// SPDX-License-Identifier: Apache-2.0
#include "planner/beside_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/planner/instances.h"

namespace braid {
namespace {

using Groups = std::vector<Plan::Group>;

const Planner& planner(const char* name) { return **find_planner(name); }

// What two tensors of one byte take with a startup of 1 s and 1 s per byte: 4 s if each goes as
// soon as it is ready, 5 s together. Others who send 4 bytes from the beginning on take 5 s. Then
// it is 9 s one by one, and 8 s together.
class TwoTensorsTest : public ::testing::Test {
 protected:
  BesidePlan plan(double share, const char* name = "streams") const {
    const BesideSteps kinds[] = {{share, {{0, 4}}}};
    return plan_beside(planner(name), workload_, kinds, cost_, {}, {});
  }
  const Workload workload_{{{0, 1}, {2, 1}}, 0, {}};
  const LinearCostModel cost_{LinearCost{1, 1}};
  const Groups apart_ = {{0, 1, 1}, {1, 2, 1}};
  const Groups together_ = {{0, 2, 1}};
};

TEST_F(TwoTensorsTest, APlanThatIsMadeAloneIsWorseBesideOthers) {
  const BesidePlan alone = plan_beside(planner("streams"), workload_, {}, cost_, {}, {});
  EXPECT_EQ(alone.plan.groups, apart_);
  EXPECT_EQ(alone.iteration_seconds, 4);
  const BesideSteps always[] = {{1, {{0, 4}}}};
  EXPECT_EQ(mean_iteration_seconds(workload_, always, alone.plan, cost_, {}), 9);
  EXPECT_EQ(plan(1).plan.groups, together_);
  EXPECT_EQ(plan(1).iteration_seconds, 8);
}

TEST_F(TwoTensorsTest, StepsInWhichOthersSendCountForAsManyAsTheyAre) {
  EXPECT_EQ(plan(0.25).plan.groups, apart_);
  EXPECT_EQ(plan(0.25).iteration_seconds, 0.25 * 9 + 0.75 * 4);
  EXPECT_EQ(plan(0.5).plan.groups, apart_) << "of equals the one that was made alone";
  EXPECT_EQ(plan(0.75).plan.groups, together_);
  EXPECT_EQ(plan(0.75).iteration_seconds, 0.75 * 8 + 0.25 * 5);
}

TEST_F(TwoTensorsTest, APlannerThatDoesNotLookBesideMakesTheSamePlan) {
  EXPECT_EQ(plan(1, "exact").plan.groups, apart_);
  EXPECT_EQ(plan(1, "exact").iteration_seconds, 9);
}

TEST_F(TwoTensorsTest, TheStepGoesOnUntilTheOthersAreThrough) {
  const BesideSteps late[] = {{1, {{10, 4}}}};
  EXPECT_EQ(mean_iteration_seconds(workload_, late, {apart_}, cost_, {}), 15);
}

class RandomBesideTest : public ::testing::Test {
 protected:
  std::vector<Workload::Unit> units() {
    std::vector<Workload::Unit> result;
    double ready = 0;
    for (uint64_t count = instances_.below(12); count > 0; --count) {
      ready += instances_.real(0, 0.02);
      result.push_back({ready, instances_.below(5'000'000)});
    }
    return result;
  }
  std::vector<BesideSteps> kinds() {
    std::vector<BesideSteps> result;
    for (uint64_t count = instances_.below(3); count > 0; --count)
      result.push_back({instances_.real(0.1, 0.5), units()});
    return result;
  }
  SimulatorOptions streams() { return {.streams = 1 + static_cast<uint32_t>(instances_.below(4))}; }
  Instances instances_{35};
};

TEST_F(RandomBesideTest, IsNeverWorseThanAlone) {
  uint32_t better = 0;
  for (int i = 0; i < 200; ++i) {
    const Workload workload = instances_.real_workload(30);
    const LinearCostModel cost(LinearCost{instances_.real(0, 0.01), instances_.real(0, 5e-9)});
    const SimulatorOptions options = streams();
    PlannerOptions planner_options;
    planner_options.streams = options.streams;
    const std::vector<BesideSteps> beside = kinds();
    for (const char* name : {"streams", "exact", "mgwfbp"}) {
      const Plan alone = planner(name).plan(workload, cost, planner_options);
      const BesidePlan joint =
          plan_beside(planner(name), workload, beside, cost, planner_options, options);
      const double before = mean_iteration_seconds(workload, beside, alone, cost, options);
      EXPECT_LE(joint.iteration_seconds, before) << name;
      EXPECT_EQ(joint.iteration_seconds,
                mean_iteration_seconds(workload, beside, joint.plan, cost, options));
      EXPECT_TRUE(check_plan(joint.plan, workload.tensors.size()).is_ok());
      if (joint.iteration_seconds < before) ++better;
    }
  }
  EXPECT_GT(better, 20u);
}

TEST_F(RandomBesideTest, NobodyBesideChangesNothing) {
  for (int i = 0; i < 50; ++i) {
    const Workload workload = instances_.real_workload(30);
    const LinearCostModel cost(LinearCost{instances_.real(0, 0.01), instances_.real(0, 5e-9)});
    const SimulatorOptions options = streams();
    PlannerOptions planner_options;
    planner_options.streams = options.streams;
    for (const Planner* one : planners()) {
      const Plan alone = one->plan(workload, cost, planner_options);
      const BesidePlan joint = plan_beside(*one, workload, {}, cost, planner_options, options);
      EXPECT_EQ(joint.plan, alone) << one->name();
      EXPECT_EQ(joint.iteration_seconds,
                simulate(workload, alone, cost, options).iteration_seconds);
    }
  }
}

// To the network all units are alike: those of the plan and those of others.
TEST_F(RandomBesideTest, OthersUnitsTakeWhatUnitsOfThePlanTake) {
  for (int i = 0; i < 300; ++i) {
    Workload workload = instances_.real_workload(20);
    const LinearCostModel cost(LinearCost{instances_.real(0, 0.01), instances_.real(0, 5e-9)});
    const SimulatorOptions options = streams();
    workload.beside = units();
    Workload all{{}, workload.forward_seconds, {}};
    Plan each, own;
    for (const Workload::Unit& unit : workload.beside)
      all.tensors.push_back({unit.ready_seconds, unit.bytes});
    for (const Workload::Tensor& tensor : workload.tensors) {
      const auto count = static_cast<uint32_t>(own.groups.size());
      own.groups.push_back({count, count + 1, 1});
      all.tensors.push_back(tensor);
    }
    std::ranges::stable_sort(all.tensors, {}, &Workload::Tensor::ready_seconds);
    for (uint32_t place = 0; place < all.tensors.size(); ++place)
      each.groups.push_back({place, place + 1, 1});
    EXPECT_EQ(simulate(workload, own, cost, options).iteration_seconds,
              simulate(all, each, cost, options).iteration_seconds);
  }
}

}  // namespace
}  // namespace braid

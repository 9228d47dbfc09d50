// SPDX-License-Identifier: Apache-2.0
#include "coordinator/set_traffic.h"

#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Units = std::vector<Workload::Unit>;

constexpr uint64_t kFactors = 1;
constexpr uint64_t kGradients = 2;
constexpr uint64_t kMs = 1'000'000;

// Three tensors of 1,000 bytes, one each 10 ms; the first two are merged.
SetTraffic traffic(uint64_t set, std::vector<PlanReport::Beside> beside) {
  SetMeasured measured;
  for (const uint64_t i : {0, 1, 2})
    measured.tensors.push_back({100 + i, 0.01 * static_cast<double>(i), 1000});
  measured.last_ready_seconds = 0.02;
  measured.beside = std::move(beside);
  return {set, {{101, 100}, {102}}, std::make_shared<const SetMeasured>(std::move(measured))};
}

Workload workload() { return {{{0, 1000}, {0.02, 1000}}, 0.05, {}}; }

void expect_units(const BesideSteps& kind, const Units& expected) {
  ASSERT_EQ(kind.units.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(kind.units[i].ready_seconds, expected[i].ready_seconds, 1e-12);
    EXPECT_EQ(kind.units[i].bytes, expected[i].bytes);
  }
}

// Gradients begin 15 ms after factors; a step takes 100 ms.
class SetTrafficTest : public ::testing::Test {
 protected:
  SetTraffic factors_ = traffic(kFactors, {{kGradients, 85 * kMs, 1.0}});
  SetTraffic gradients_ = traffic(kGradients, {{kFactors, 15 * kMs, 0.25}});
};

TEST_F(SetTrafficTest, WhatBeganBeforeMovesTheBeginning) {
  Workload own = workload();
  const SetTraffic others[] = {factors_};
  const auto kinds = beside_steps(kGradients, *gradients_.measured, others, own);
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].share, 0.25);
  // The first group is ready with its second tensor, 5 ms before the gradients begin.
  expect_units(kinds[0], {{0, 2000}, {0.01, 1000}});
  EXPECT_NEAR(own.tensors[0].ready_seconds, 0.005, 1e-12);
  EXPECT_NEAR(own.tensors[1].ready_seconds, 0.025, 1e-12);
  EXPECT_NEAR(own.forward_seconds, 0.045, 1e-12);
}

TEST_F(SetTrafficTest, WhatBeginsAfterwardsComesLater) {
  Workload own = workload();
  const SetTraffic others[] = {gradients_};
  const auto kinds = beside_steps(kFactors, *factors_.measured, others, own);
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].share, 1.0);
  expect_units(kinds[0], {{0.025, 2000}, {0.035, 1000}});
  EXPECT_EQ(own.tensors, workload().tensors);
  EXPECT_EQ(own.forward_seconds, workload().forward_seconds);
}

TEST_F(SetTrafficTest, ModelsThatTakeTurnsAreNotBesideEachOther) {
  const SetTraffic first = traffic(kFactors, {{kGradients, 50 * kMs, 1.0}});
  const SetTraffic second = traffic(kGradients, {{kFactors, 50 * kMs, 1.0}});
  Workload own = workload();
  const SetTraffic others[] = {second};
  EXPECT_TRUE(beside_steps(kFactors, *first.measured, others, own).empty());
  EXPECT_EQ(own.tensors, workload().tensors);
}

TEST_F(SetTrafficTest, WhatTheSetDoesNotNameIsNotBeside) {
  Workload own = workload();
  const SetTraffic others[] = {traffic(7, {})};
  EXPECT_TRUE(beside_steps(kFactors, *factors_.measured, others, own).empty());
}

TEST_F(SetTrafficTest, RareStepsAreAmongFrequentOnes) {
  const SetTraffic own_set = traffic(kGradients, {{kFactors, 0, 0.25}, {7, 0, 1.0}});
  Workload own = workload();
  const SetTraffic others[] = {traffic(kFactors, {}), traffic(7, {})};
  const auto kinds = beside_steps(kGradients, *own_set.measured, others, own);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].share, 0.75);
  expect_units(kinds[0], {{0.01, 2000}, {0.02, 1000}});
  EXPECT_EQ(kinds[1].share, 0.25);
  expect_units(kinds[1], {{0.01, 2000}, {0.01, 2000}, {0.02, 1000}, {0.02, 1000}});
}

TEST_F(SetTrafficTest, NodesAreTakenTogether) {
  PlanReport one, other;
  one.beside = {{kFactors, 10, 1.0}, {7, 40, 0.5}};
  other.beside = {{kFactors, 20, 0.5}};
  const PlanReport reports[] = {one, other};
  EXPECT_EQ(merge_beside(reports),
            (std::vector<PlanReport::Beside>{{kFactors, 15, 0.75}, {7, 40, 0.25}}));
}

}  // namespace
}  // namespace braid

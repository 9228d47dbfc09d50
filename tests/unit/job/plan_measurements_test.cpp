// SPDX-License-Identifier: Apache-2.0
#include "job/plan_measurements.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(PlanMeasurementsTest, KeepsTheLatestOfEachSize) {
  PlanMeasurements measurements;
  measurements.add({{{500, 9.0, 1}}});
  for (size_t i = 0; i < PlanMeasurements::kKeptPerSize + 10; ++i)
    measurements.add({{{1000, static_cast<double>(i + 1), 1}}});
  const auto all = measurements.quickest(1);
  ASSERT_EQ(all.size(), PlanMeasurements::kKeptPerSize + 1);
  EXPECT_EQ(all[0], (CostMeasurement{500, 9.0, 1}));
  EXPECT_EQ(all[1], (CostMeasurement{1000, 11.0, 1}));
}

TEST(PlanMeasurementsTest, TakesNoMoreSizesThanItsLimit) {
  PlanMeasurements measurements;
  for (uint64_t bytes = 1; bytes <= PlanMeasurements::kSizesMax + 5; ++bytes)
    measurements.add({{{bytes, 1.0, 1}}});
  EXPECT_EQ(measurements.quickest(1).size(), PlanMeasurements::kSizesMax);
}

TEST(PlanMeasurementsTest, AnotherNetworkStretchesTheTransfersOfBefore) {
  PlanMeasurements measurements;
  measurements.add({{{1000, 1.5, 1}, {2000, 2.5, 1}, {4000, 4.5, 1}}});
  const LinearCostModel cost({0.5, 1e-3});
  // Twice as slow as expected, and one outlier.
  const std::vector<CostMeasurement> latest = {{2000, 4.9, 1}, {2000, 5.0, 1}, {2000, 400, 1}};
  measurements.rescale(latest, cost);
  const auto all = measurements.quickest(1);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_DOUBLE_EQ(all[0].seconds, 2.5);
  EXPECT_DOUBLE_EQ(all[1].seconds, 4.9);  // as it was measured
  EXPECT_DOUBLE_EQ(all[4].seconds, 8.5);
}

TEST(PlanMeasurementsTest, TheQuickestAreThoseThatWaitedForNobody) {
  PlanMeasurements measurements;
  measurements.add({{{1000, 3.0, 1}, {1000, 1.0, 1}, {1000, 7.0, 1}, {1000, 2.0, 1}, {5, 4.0, 1}}});
  EXPECT_EQ(measurements.quickest(0.5),
            (std::vector<CostMeasurement>{{5, 4.0, 1}, {1000, 1.0, 1}, {1000, 2.0, 1}}));
}

}  // namespace
}  // namespace braid

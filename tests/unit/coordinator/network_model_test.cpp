// SPDX-License-Identifier: Apache-2.0
#include "coordinator/network_model.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(PlanMeasurementsTest, KeepsTheLatestOfEachSize) {
  PlanMeasurements measurements;
  measurements.add({{{500, 9.0, 1}}});
  for (size_t i = 0; i < PlanMeasurements::kKeptPerSize + 10; ++i)
    measurements.add({{{1000, static_cast<double>(i + 1), 1}}});
  const auto all = measurements.all();
  ASSERT_EQ(all.size(), PlanMeasurements::kKeptPerSize + 1);
  EXPECT_EQ(all[0], (CostMeasurement{500, 9.0, 1}));
  EXPECT_EQ(all[1], (CostMeasurement{1000, 11.0, 1}));
}

TEST(PlanMeasurementsTest, TakesNoMoreSizesThanItsLimit) {
  PlanMeasurements measurements;
  for (uint64_t bytes = 1; bytes <= PlanMeasurements::kSizesMax + 5; ++bytes)
    measurements.add({{{bytes, 1.0, 1}}});
  EXPECT_EQ(measurements.all().size(), PlanMeasurements::kSizesMax);
}

TEST(PlanMeasurementsTest, AnotherNetworkStretchesTheTransfersOfBefore) {
  PlanMeasurements measurements;
  measurements.add({{{1000, 1.5, 1}, {2000, 2.5, 1}, {4000, 4.5, 1}}});
  const LinearCostModel cost({0.5, 1e-3});
  // Twice as slow as expected, and one outlier.
  const std::vector<CostMeasurement> latest = {{2000, 4.9, 1}, {2000, 5.0, 1}, {2000, 400, 1}};
  measurements.rescale(latest, cost);
  const auto all = measurements.all();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_DOUBLE_EQ(all[0].seconds, 2.5);
  EXPECT_DOUBLE_EQ(all[1].seconds, 4.9);  // as it was measured
  EXPECT_DOUBLE_EQ(all[4].seconds, 8.5);
}

TEST(MeasurementJoinTest, TheNodeThatIsReadyLastMeasuresTheAllReduce) {
  MeasurementJoin join(3);
  EXPECT_TRUE(join.add({{{7, 1000, 900}, {8, 5000, 100}}}).empty());
  EXPECT_TRUE(join.add({{{7, 1010, 300}}}).empty());
  EXPECT_EQ(join.add({{{9, 1, 1}, {7, 1000, 800}}}),
            (std::vector<CostMeasurement>{{1000, 300e-9, 1}}));
  EXPECT_TRUE(join.add({{{8, 5000, 200}, {7, 1000, 900}}}).empty());
  EXPECT_EQ(join.add({{{8, 5000, 50}}}), (std::vector<CostMeasurement>{{5000, 50e-9, 1}}));
}

TEST(MeasurementJoinTest, SizesHaveTwoDigits) {
  MeasurementJoin join(1);
  const auto size_of = [&](uint64_t bytes) { return join.add({{{1, bytes, 9}}}).at(0).bytes; };
  EXPECT_EQ(size_of(1), 1u);
  EXPECT_EQ(size_of(99), 99u);
  EXPECT_EQ(size_of(104), 100u);
  EXPECT_EQ(size_of(105), 110u);
  EXPECT_EQ(size_of(123'456), 120'000u);
  EXPECT_EQ(size_of(996), 1000u);
}

// Whatever a peer says, sizes stay sizes.
TEST(MeasurementJoinTest, NumbersOutOfAllProportionAreHeldWithinBounds) {
  MeasurementJoin join(1);
  EXPECT_EQ(join.add({{{1, UINT64_MAX, UINT64_MAX}}}).at(0).bytes, 1'000'000'000'000'000'000u);
}

TEST(MeasurementJoinTest, NothingInNoTimeIsNoMeasurement) {
  MeasurementJoin join(1);
  EXPECT_TRUE(join.add({{{1, 0, 5}, {2, 5, 0}}}).empty());
}

}  // namespace
}  // namespace braid

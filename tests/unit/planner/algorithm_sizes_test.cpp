// SPDX-License-Identifier: Apache-2.0
#include "planner/algorithm_sizes.h"

#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kMiB = 1 << 20;

AlgorithmSizes near(uint32_t nodes) { return algorithm_sizes(nodes, assumed_hop_cost(0)); }
AlgorithmSizes far(uint32_t nodes) { return algorithm_sizes(nodes, assumed_hop_cost(5e-3)); }

TEST(AssumedHopCost, HasClassesOfRoundTrips) {
  const double at_once = assumed_hop_cost(0).hop_seconds;
  EXPECT_DOUBLE_EQ(assumed_hop_cost(499e-6).hop_seconds, at_once);
  EXPECT_DOUBLE_EQ(assumed_hop_cost(501e-6).hop_seconds, 2 * at_once);
  EXPECT_DOUBLE_EQ(assumed_hop_cost(1.4e-3).hop_seconds, 2 * at_once);
  EXPECT_DOUBLE_EQ(assumed_hop_cost(1.6e-3).hop_seconds, 4 * at_once);
  EXPECT_DOUBLE_EQ(assumed_hop_cost(5e-3).hop_seconds, 8 * at_once);
  EXPECT_DOUBLE_EQ(assumed_hop_cost(1e9).hop_seconds, 4096 * at_once);
  EXPECT_DOUBLE_EQ(assumed_hop_cost(-1).hop_seconds, at_once);
}

TEST(AlgorithmSizes, OfTwoNodesAreDirectAlone) {
  EXPECT_EQ(near(1), AlgorithmSizes{});
  EXPECT_GT(near(2).direct_bytes, 16u << 10);
  EXPECT_EQ(near(2).two_hops_bytes, 0u);
  EXPECT_EQ(near(2).halving_bytes, 0u);
  EXPECT_EQ(near(3).halving_bytes, 0u);
}

TEST(AlgorithmSizes, GrowWithTheDistance) {
  for (uint32_t nodes = 3; nodes <= 8; ++nodes) {
    EXPECT_EQ(far(nodes).direct_bytes / 8, near(nodes).direct_bytes) << nodes;
    EXPECT_EQ(far(nodes).two_hops_bytes / 8, near(nodes).two_hops_bytes) << nodes;
    EXPECT_EQ(far(nodes).halving_bytes / 8, near(nodes).halving_bytes) << nodes;
  }
  EXPECT_GT(far(4).two_hops_bytes, kMiB);
  EXPECT_LT(near(4).two_hops_bytes, kMiB);
  // In the crowd of eight nodes halving takes over earlier.
  EXPECT_LT(far(8).two_hops_bytes, far(4).two_hops_bytes);
  EXPECT_GT(far(8).halving_bytes, kMiB);
}

TEST(AlgorithmSizes, AreBounded) {
  EXPECT_EQ(algorithm_sizes(4, {1e6, 1e-12}), (AlgorithmSizes{1 << 30, 1 << 30, 1 << 30}));
  EXPECT_EQ(algorithm_sizes(4, {0, 1e-9}), AlgorithmSizes{});
  EXPECT_EQ(algorithm_sizes(4, {1e-3, 0}), AlgorithmSizes{});
  EXPECT_EQ(algorithm_sizes(100'000, assumed_hop_cost(0)).two_hops_bytes, 0u);
}

TEST(FitHopCost, FindsTheCostOfWhatWasMeasured) {
  const HopCost cost{2e-3, 8e-10};
  // Four nodes: around the ring six hops, and 1.5 of the bytes; by two hops 1.8 times as many.
  const auto by_ring = [&](uint64_t bytes) {
    return 6 * cost.hop_seconds + 1.5 * cost.seconds_per_byte * static_cast<double>(bytes);
  };
  const double by_two_hops = 2 * cost.hop_seconds + 2.7 * cost.seconds_per_byte * (kMiB / 4);
  for (const bool has_two_hops : {false, true}) {
    const std::vector<CostMeasurement> measured = {
        {kMiB / 4, has_two_hops ? by_two_hops : by_ring(kMiB / 4)},
        {2 * kMiB, by_ring(2 * kMiB)},
        {16 * kMiB, by_ring(16 * kMiB)}};
    const auto fitted = fit_hop_cost(measured, 4, {0, has_two_hops ? kMiB : 0, 0});
    ASSERT_TRUE(fitted.has_value());
    EXPECT_NEAR(fitted->hop_seconds, cost.hop_seconds, 1e-9);
    EXPECT_NEAR(fitted->seconds_per_byte, cost.seconds_per_byte, 1e-15);
  }
}

TEST(FitHopCost, NeedsSizesThatTellHopsFromBytes) {
  EXPECT_FALSE(fit_hop_cost({}, 4, {}));
  const std::vector<CostMeasurement> alike = {{kMiB, 1e-2}, {kMiB + 1000, 1.01e-2}};
  EXPECT_FALSE(fit_hop_cost(alike, 4, {}));
  // Times that fall with the size.
  const std::vector<CostMeasurement> strange = {{kMiB, 1e-1}, {16 * kMiB, 1e-2}};
  EXPECT_FALSE(fit_hop_cost(strange, 4, {}));
  const std::vector<CostMeasurement> useless = {{0, 1}, {kMiB, 0}, {16 * kMiB, 1e-2, 2}};
  EXPECT_FALSE(fit_hop_cost(useless, 4, {}));
  const std::vector<CostMeasurement> good = {{kMiB, 1e-2}, {16 * kMiB, 5e-2}};
  EXPECT_TRUE(fit_hop_cost(good, 4, {}));
  EXPECT_FALSE(fit_hop_cost(good, 1, {}));
}

}  // namespace
}  // namespace braid

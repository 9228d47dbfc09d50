// SPDX-License-Identifier: Apache-2.0
#include "planner/algorithm_cost.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::names;

constexpr LinkCost kLink = {2, 3, 5};  // α, β, γ

LinearCost cost_of(std::string_view name, uint32_t workers, const AlgorithmOptions& options = {}) {
  const auto cost = algorithm_cost(name, workers, kLink, options);
  EXPECT_TRUE(cost) << cost.status().message();
  return cost ? *cost : LinearCost{};
}

TEST(AlgorithmCost, FollowsThePapersTable) {
  EXPECT_EQ(cost_of("ring", 8), (LinearCost{28, 5.25 + 4.375}));
  EXPECT_EQ(cost_of("recursive-doubling", 8), (LinearCost{6, 24}));
  EXPECT_EQ(cost_of("halving-doubling", 8), (LinearCost{12, 6 - 11.0 / 8 + 5}));
  EXPECT_EQ(cost_of("binary-tree", 8), (LinearCost{12, 33}));
  EXPECT_EQ(cost_of("double-binary-trees", 8), (LinearCost{12, 8}));
}

TEST(AlgorithmCost, TakesTheRealLogarithm) {
  EXPECT_DOUBLE_EQ(cost_of("recursive-doubling", 6).startup_seconds, 2 * std::log2(6.0));
}

TEST(AlgorithmCost, OfOneWorkerIsNothing) {
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(cost_of(algorithm.name, 1), LinearCost{}) << algorithm.name;
  }
}

TEST(AlgorithmCost, GrowsWithTheWorkers) {
  for (const Algorithm& algorithm : algorithms()) {
    LinearCost before;
    for (uint32_t workers = 8; workers <= 4096; workers *= 2) {
      const LinearCost cost = cost_of(algorithm.name, workers);
      EXPECT_GT(cost.startup_seconds, before.startup_seconds) << algorithm.name;
      EXPECT_GE(cost.seconds_per_byte, before.seconds_per_byte) << algorithm.name;
      before = cost;
    }
  }
}

TEST(HierarchicalCost, IsThatOfTheRingsItConsistsOf) {
  AlgorithmOptions options;
  options.group_workers = 4;
  options.inside = {0.5, 0.25, 1};
  // Inside: 2·3·0.5 and (3/4)·(2·0.25 + 1); between: 2·7·2 and (7/8)·(2·3 + 5) of a quarter.
  EXPECT_EQ(cost_of("hierarchical", 32, options),
            (LinearCost{3 + 28, 0.75 * 1.5 + 0.875 * 11 / 4}));
}

TEST(HierarchicalCost, IsARingWithinOneGroup) {
  EXPECT_EQ(cost_of("hierarchical", 5), cost_of("ring", 5));
}

TEST(HierarchicalCost, SendsAsMuchAsARingWithFewerStartups) {
  const LinearCost ring = cost_of("ring", 64);
  const LinearCost hierarchical = cost_of("hierarchical", 64);
  EXPECT_NEAR(hierarchical.seconds_per_byte, ring.seconds_per_byte, 1e-12);
  EXPECT_LT(hierarchical.startup_seconds, ring.startup_seconds);
}

TEST(AlgorithmCost, ErrorsSayWhatWouldBeRight) {
  EXPECT_TRUE(names(algorithm_cost("star", 2, kLink).status().message(),
                    {"'star'", "ring", "hierarchical"}));
  EXPECT_EQ(algorithm_cost("ring", 0, kLink).status().message(), "0 workers; right are 1 or more");
  EXPECT_TRUE(
      names(algorithm_cost("hierarchical", 12, kLink).status().message(), {"12 workers", "8"}));
  for (const LinkCost& link : {LinkCost{-1, 0, 0}, LinkCost{0, NAN, 0}, LinkCost{0, 0, INFINITY}}) {
    EXPECT_FALSE(algorithm_cost("ring", 2, link));
  }
  AlgorithmOptions options;
  options.group_workers = 0;
  EXPECT_FALSE(algorithm_cost("hierarchical", 2, kLink, options));
}

}  // namespace
}  // namespace braid

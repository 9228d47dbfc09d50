// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/planner/placement_instances.h"

namespace braid {
namespace {

constexpr double kRounding = 1e-11;

// Plays a placement by the words of planner/placement.h, and says its makespan.
double played_makespan(const PlacementInstance& instance, const std::vector<uint32_t>& owners,
                       const std::vector<uint32_t>& order) {
  std::vector<double> loads(instance.ranks);
  double link = 0;
  for (const uint32_t item : order) {
    const PlacedItem& one = instance.items[item];
    loads[owners[item]] += one.cost_seconds;
    const double spread =
        instance.ranks == 1 ? 0 : instance.link.seconds(static_cast<double>(one.bytes));
    link = std::max(link, loads[owners[item]]) + spread;
  }
  double everybody = 0;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == Placement::kEverybody) everybody += instance.items[i].cost_seconds;
  }
  return std::max(link, *std::ranges::max_element(loads) + everybody);
}

// Really all owners and all orders of spreading, without a thought.
double thoughtless_makespan(const PlacementInstance& instance) {
  const size_t count = instance.items.size();
  std::vector<uint32_t> owners(count);
  double best = std::numeric_limits<double>::infinity();
  const auto try_orders = [&] {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < count; ++i) {
      if (owners[i] != Placement::kEverybody) order.push_back(i);
    }
    do {
      best = std::min(best, played_makespan(instance, owners, order));
    } while (std::next_permutation(order.begin(), order.end()));
  };
  const auto choose = [&](const auto& self, size_t item) -> void {
    if (item == count) {
      try_orders();
      return;
    }
    for (uint32_t rank = 0; rank <= instance.ranks; ++rank) {
      owners[item] = rank == instance.ranks ? Placement::kEverybody : rank;
      self(self, item + 1);
    }
  };
  choose(choose, 0);
  return best;
}

// Whatever the rule, a placement is what it says.
void expect_consistent(const PlacementInstance& instance, const Placement& placement) {
  ASSERT_EQ(placement.owners.size(), instance.items.size());
  std::vector<uint32_t> owned;
  std::vector<double> loads(instance.ranks);
  for (uint32_t i = 0; i < placement.owners.size(); ++i) {
    const uint32_t owner = placement.owners[i];
    if (owner != Placement::kEverybody) owned.push_back(i);
    for (uint32_t rank = 0; rank < instance.ranks; ++rank) {
      if (owner == rank || owner == Placement::kEverybody)
        loads[rank] += instance.items[i].cost_seconds;
    }
  }
  std::vector<uint32_t> ordered = placement.order;
  std::ranges::sort(ordered);
  ASSERT_EQ(ordered, owned);
  ASSERT_EQ(placement.loads.size(), instance.ranks);
  for (uint32_t rank = 0; rank < instance.ranks; ++rank) {
    ASSERT_NEAR(placement.loads[rank], loads[rank], kRounding * loads[rank]);
  }
  const double makespan = played_makespan(instance, placement.owners, placement.order);
  ASSERT_NEAR(placement.makespan_seconds, makespan, kRounding * makespan);
  ASSERT_LE(placement.bound_seconds, placement.makespan_seconds);
}

TEST(PlacementExactTest, BruteForceFindsWhatAllOrdersOfAllOwnersHave) {
  Instances instances(1);
  for (int i = 0; i < 300; ++i) {
    const PlacementInstance instance = random_placement(instances, 4, 3, i % 2 == 0);
    const double expected = thoughtless_makespan(instance);
    ASSERT_NEAR(brute_force_makespan(instance), expected, kRounding * expected) << "instance " << i;
  }
}

void expect_optimal(const PlacementInstance& instance) {
  const double expected = brute_force_makespan(instance);
  for (const char* rule : {"best", "exact"}) {
    const Placement placement = instance.placed(rule);
    ASSERT_NO_FATAL_FAILURE(expect_consistent(instance, placement));
    const bool is_optimal = placement.makespan_seconds <= expected * (1 + kRounding) + kRounding;
    ASSERT_TRUE(is_optimal || (rule == std::string("best") && !placement.is_optimal)) << rule;
    ASSERT_TRUE(placement.is_optimal || rule == std::string("best"));
  }
  // The bound of rules that prove nothing.
  ASSERT_LE(instance.placed("block").bound_seconds, expected * (1 + kRounding));
}

TEST(PlacementExactTest, FindsWhatBruteForceFinds) {
  Instances instances(2);
  for (int i = 0; i < 4000; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_optimal(random_placement(instances, 6, 4, i % 2 == 0)))
        << "instance " << i;
  }
}

TEST(PlacementExactTest, FindsWhatBruteForceFindsForTenItemsOnFourRanks) {
  Instances instances(3);
  for (int i = 0; i < 12; ++i) {
    PlacementInstance instance = random_placement(instances, 10, 4, i % 2 == 0);
    while (instance.items.size() < 10 || instance.ranks < 4) {
      instance = random_placement(instances, 10, 4, i % 2 == 0);
    }
    ASSERT_NO_FATAL_FAILURE(expect_optimal(instance)) << "instance " << i;
  }
}

// Factors have few sizes, so many placements are equally good, and none of their bounds is reached.
TEST(PlacementExactTest, FindsWhatBruteForceFindsForTenFactorsOnFourRanks) {
  Instances instances(4);
  for (const double slowness : {1, 3, 10, 30}) {
    PlacementInstance instance;
    instance.ranks = 4;
    instance.link = {1e-4 * slowness, 1e-9 * slowness};
    for (size_t i = 0; i < 10; ++i) {
      const uint64_t dimension = uint64_t{64} << instances.below(7);
      const double cost = 1e-4 + 1e-11 * std::pow(static_cast<double>(dimension), 3);
      instance.items.push_back(placed_item(i, dimension, cost, dimension * (dimension + 1) * 2));
    }
    ASSERT_NO_FATAL_FAILURE(expect_optimal(instance)) << "slowness " << slowness;
  }
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/planner/placement_instances.h"

namespace braid {
namespace {

constexpr uint32_t kAll = Placement::kEverybody;
using PlacedOwners = std::vector<uint32_t>;

const std::vector<std::string> kNamedRules = {"lpt",       "lbp",         "lbp:d",     "lbp:d2",
                                              "lbp:t",     "round-robin", "block",     "megatron",
                                              "kaisa:0.1", "kaisa:0.25",  "kaisa:0.5", "kaisa:1"};

PlacementInstance with_costs(const std::vector<double>& costs, uint32_t ranks) {
  PlacementInstance instance;
  instance.ranks = ranks;
  for (const double cost : costs) {
    instance.items.push_back(placed_item(instance.items.size(), 10, cost, 1));
  }
  return instance;
}

TEST(PlacementRulesTest, RulesThatLookAtNoCost) {
  const PlacementInstance instance = with_costs({5, 5, 5, 5, 5, 5, 5}, 3);
  EXPECT_EQ(instance.placed("round-robin").owners, (PlacedOwners{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(instance.placed("block").owners, (PlacedOwners{0, 0, 0, 1, 1, 2, 2}));
}

TEST(PlacementRulesTest, TheLongestProcessingTimeGoesFirst) {
  const PlacementInstance instance = with_costs({3, 3, 2, 2, 2}, 2);
  EXPECT_EQ(instance.placed("lpt").owners, (PlacedOwners{0, 1, 0, 1, 0}));
  EXPECT_EQ(instance.placed("lpt").makespan_seconds, 7);
  EXPECT_EQ(instance.placed("best").makespan_seconds, 6);
}

// 1,024 and above have owners; the fourth one goes where the sum of d, or of d², is least.
TEST(PlacementRulesTest, SpdKfacPlacesByDimensions) {
  PlacementInstance instance;
  instance.ranks = 2;
  size_t index = 0;
  for (const uint64_t dimension : {1023, 4000, 2300, 2300, 1100}) {
    instance.items.push_back(placed_item(index++, dimension, 1, 1));
  }
  EXPECT_EQ(instance.placed("lbp").owners, (PlacedOwners{kAll, 0, 1, 1, 0}));
  EXPECT_EQ(instance.placed("lbp:d").owners, instance.placed("lbp").owners);
  EXPECT_EQ(instance.placed("lbp:d2").owners, (PlacedOwners{kAll, 0, 1, 1, 1}));
}

// The paper's test for each tensor, by times.
TEST(PlacementRulesTest, SpdKfacByTimesSpreadsWhatTakesLongerToCompute) {
  PlacementInstance instance = with_costs({1, 3, 2, 4}, 2);
  instance.link = {2, 0};
  EXPECT_EQ(instance.placed("lbp:t").owners, (PlacedOwners{kAll, 1, 1, 0}));
}

TEST(PlacementRulesTest, MegatronPlacesByTheLongSideTimesTheSquareOfTheShortOne) {
  PlacementInstance instance = with_costs({1, 1, 1}, 2);
  instance.items[0].shape = {10, 10};     // 1,000
  instance.items[1].shape = {5, 10, 10};  // 100 · 5² = 2,500
  instance.items[2].shape = {1000};       // 1,000 · 1² = 1,000
  EXPECT_EQ(instance.placed("megatron").owners, (PlacedOwners{1, 0, 1}));
}

// Two groups, {0, 2} and {1, 3}: the third item goes to the group with less to do, although a rank
// of the other group has nothing.
TEST(PlacementRulesTest, KaisaChoosesTheGroupOfGradientWorkersFirst) {
  const PlacementInstance instance = with_costs({9, 4, 3, 1}, 4);
  EXPECT_EQ(instance.placed("kaisa:0.5").owners, (PlacedOwners{0, 1, 3, 3}));
  EXPECT_EQ(instance.placed("kaisa:1").owners, instance.placed("lpt").owners);
  EXPECT_EQ(instance.placed("kaisa:0").owners, instance.placed("kaisa:0.25").owners);
  // 0.6 · 4 = 2.4: the nearest divisor of 4.
  EXPECT_EQ(instance.placed("kaisa:0.6").owners, instance.placed("kaisa:0.5").owners);
}

TEST(PlacementRulesTest, OneRankHasNobodyToSpreadTo) {
  PlacementInstance instance = with_costs({1, 2, 3}, 1);
  instance.link = {100, 1};
  for (const std::string& rule : kNamedRules) {
    EXPECT_EQ(instance.placed(rule).makespan_seconds, 6) << rule;
  }
  EXPECT_EQ(instance.placed("best").loads, std::vector<double>{6});
}

// SPD-KFAC decides for each tensor by itself: to spread a small item takes longer than to compute
// it, so everybody computes it. Here all placements of the large item by an owner take at least 16.
// It is better that everybody computes the large item, while the link spreads the small ones.
TEST(PlacementRulesTest, SpdKfacsPlacementIsNotOptimal) {
  PlacementInstance instance = with_costs({12, 3, 3, 3}, 4);
  instance.link = {4, 0};
  EXPECT_EQ(instance.placed("lbp:t").owners, (PlacedOwners{0, kAll, kAll, kAll}));
  EXPECT_EQ(instance.placed("lbp:t").makespan_seconds, 21);
  const Placement best = instance.placed("best");
  EXPECT_TRUE(best.is_optimal);
  EXPECT_EQ(best.makespan_seconds, 15);
  EXPECT_EQ(best.owners[0], kAll);
  EXPECT_EQ(best.order.size(), 3u);
}

void expect_never_worse(const PlacementInstance& instance) {
  const Placement best = instance.placed("best");
  ASSERT_LE(best.bound_seconds, best.makespan_seconds);
  for (const std::string& rule : kNamedRules) {
    const Placement named = instance.placed(rule);
    ASSERT_LE(best.makespan_seconds, named.makespan_seconds) << rule;
    ASSERT_LE(named.bound_seconds, best.makespan_seconds * (1 + 1e-11)) << rule;
  }
}

TEST(PlacementRulesTest, NoRuleIsEverBetterThanBest) {
  Instances instances(11);
  for (int i = 0; i < 10'000; ++i) {
    const size_t items_max = i % 200 == 0 ? 200 : 12;
    const uint32_t ranks_max = i % 200 == 0 ? 64 : 8;
    ASSERT_NO_FATAL_FAILURE(
        expect_never_worse(random_placement(instances, items_max, ranks_max, i % 2 == 0)))
        << "instance " << i;
  }
}

TEST(PlacementRulesTest, ExactIsNeverWorseThanBest) {
  Instances instances(12);
  for (int i = 0; i < 200; ++i) {
    const PlacementInstance instance = random_placement(instances, 9, 5, i % 2 == 0);
    ASSERT_LE(instance.placed("exact").makespan_seconds, instance.placed("best").makespan_seconds);
  }
}

TEST(PlacementRulesTest, TheSameInputGivesTheSamePlacement) {
  Instances instances(13);
  const PlacementInstance instance = random_placement(instances, 300, 16, false);
  const Placement first = instance.placed("best");
  const Placement second = instance.placed("best");
  EXPECT_EQ(first.owners, second.owners);
  EXPECT_EQ(first.order, second.order);
}

TEST(PlacementRulesTest, PlacesAsMuchAsIsAllowed) {
  Instances instances(14);
  PlacementInstance instance;
  instance.ranks = Placement::kRanksMax;
  instance.link = {1e-4, 1e-9};
  for (size_t i = 0; i < PlacedItem::kItemsMax; ++i) {
    instance.items.push_back(placed_item(i, 100, instances.real(0, 1), 40'000));
  }
  const Placement best = instance.placed("best");
  EXPECT_LE(best.bound_seconds, best.makespan_seconds);
  EXPECT_EQ(best.loads.size(), Placement::kRanksMax);
}

std::string refused(const PlacementInstance& instance, std::string_view rule = "best") {
  const auto placement = place(instance.items, instance.ranks, rule, instance.link);
  return placement ? "" : placement.status().message();
}

TEST(PlacementRulesTest, WhatCannotBePlacedIsNamed) {
  const PlacementInstance good = with_costs({1, 2}, 2);
  const auto changed = [&](auto change) {
    PlacementInstance instance = good;
    change(instance);
    return refused(instance);
  };
  EXPECT_EQ(refused(good), "");
  EXPECT_EQ(refused(good, "fastest"),
            "no rule of placement is named 'fastest'; there are best, exact, lpt, lbp, lbp:d, "
            "lbp:d2, lbp:t, round-robin, block, megatron, kaisa:F");
  for (const char* rule : {"kaisa:", "kaisa:2", "kaisa:-1", "kaisa:nan", "kaisa:0.5x"}) {
    EXPECT_NE(refused(good, rule).find("such as kaisa:0.5"), std::string::npos) << rule;
  }
  const auto nothing = changed([](auto& one) { one.items.clear(); });
  EXPECT_EQ(nothing, "there are 0 items to place; right are 1 to 100000");
  EXPECT_EQ(changed([](auto& one) { one.ranks = 0; }), "there are 0 ranks; right are 1 to 65536");
  EXPECT_EQ(changed([](auto& one) { one.ranks = 65'537; }),
            "there are 65537 ranks; right are 1 to 65536");
  EXPECT_EQ(changed([](auto& one) { one.items[1].id = "item0"; }),
            "item 1 'item0': its id stands twice; right is a name that no other item has");
  EXPECT_EQ(changed([](auto& one) { one.items[1].id = ""; }),
            "item 1 '': its id is empty; right is a name that no other item has");
  for (const double cost :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const auto said = changed([cost](auto& one) { one.items[1].cost_seconds = cost; });
    EXPECT_EQ(said.find("item 1 'item1': its cost is "), 0u) << said;
  }
  EXPECT_EQ(changed([](auto& one) {
              one.items[0].shape = {3, 0};
            }),
            "item 0 'item0': its shape has a dimension of 0; right are integers from 1");
  EXPECT_EQ(changed([](auto& one) { one.items[0].shape = {}; }),
            "item 0 'item0': its shape has 0 dimensions; right are 1 to 8");
  EXPECT_EQ(changed([](auto& one) {
              one.items[0].shape = {uint64_t{1} << 40, 1 << 23};
            }),
            "item 0 'item0': its shape has 2^63 elements or more");
  EXPECT_EQ(changed([](auto& one) { one.items[0].bytes = uint64_t{1} << 63; }),
            "item 0 'item0': its bytes are 2^63 or more");
  EXPECT_EQ(changed([](auto& one) { one.link.startup_seconds = -1; }),
            "the link takes -1 + 0 * bytes seconds; right are numbers from 0");
  const auto endless = changed([](auto& one) {
    for (PlacedItem& item : one.items) item.cost_seconds = 1e308;
  });
  EXPECT_EQ(endless.find("item 1 'item1': with it the sum of all times is infinite"), 0u);
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// Routes alone: every node's view of them, put together.
#include "engine/route.h"

#include <bit>
#include <map>

#include <gtest/gtest.h>

#include "route_world.h"

namespace braid::test {
namespace {

class RingRoute : public testing::TestWithParam<uint32_t> {};

TEST_P(RingRoute, SumsAllPartsOnceAroundTheRing) {
  const uint32_t nodes = GetParam();
  const Routes routes = all_places(nodes, ring_route);
  const auto sent = expect_all_reduced(routes);
  expect_all_begin(routes);
  expect_neighbours_match(routes);
  for (uint32_t place = 0; place < nodes; ++place) {
    EXPECT_EQ(sent[place], 2 * (nodes - 1));
    EXPECT_EQ(routes[place].targets, std::vector<uint32_t>{(place + 1) % nodes});
    EXPECT_TRUE(routes[place].segments[place].is_owner());
    // The next node begins the segment, so additions go around from there.
    const uint32_t first = (place + 1) % nodes;
    EXPECT_TRUE(routes[first].segments[place].parts_from.empty());
    EXPECT_EQ(routes[first].first_segment, place);
  }
}

TEST_P(RingRoute, AReduceScatterKeepsTheSumsWhereTheyAre) {
  const uint32_t nodes = GetParam();
  const Routes whole = all_places(nodes, ring_route);
  const Routes routes = all_places(nodes, ring_reduce_scatter_route);
  expect_all_begin(routes);
  expect_neighbours_match(routes);
  for (uint32_t segment = 0; segment < nodes; ++segment) {
    SegmentWorld world(routes, segment, 1);
    world.run();
    expect_complete(world.sum_at(segment), nodes);
    for (uint32_t place = 0; place < nodes; ++place) {
      EXPECT_EQ(world.messages_of(place), place == segment ? 0U : 1U);
      EXPECT_EQ(routes[place].segments[segment].parts_from,
                whole[place].segments[segment].parts_from);
    }
  }
}

TEST_P(RingRoute, AGatherBringsTheOwnersBytesToAll) {
  const uint32_t nodes = GetParam();
  const Routes routes = all_places(nodes, ring_gather_route);
  expect_neighbours_match(routes);
  for (uint32_t place = 0; place < nodes; ++place) {
    EXPECT_EQ(routes[place].parts, 0U);
    for (uint32_t segment = 0; segment < nodes; ++segment) {
      const SegmentRoute& segment_route = routes[place].segments[segment];
      EXPECT_EQ(segment_route.is_owner(), place == segment);
      EXPECT_FALSE(segment_route.part_to.has_value());
      EXPECT_EQ(segment_route.sum_to.size(), (place + 1) % nodes == segment ? 0U : 1U);
    }
  }
}

TEST_P(RingRoute, HalvesOfTwoHopsAreOneHopEach) {
  const uint32_t nodes = GetParam();
  const Routes whole = all_places(nodes, two_hops_route);
  Routes sums, gathers;
  for (const Route& route : whole) {
    sums.push_back(reduce_scatter_of(route));
    gathers.push_back(gather_of(route));
  }
  expect_all_begin(sums);
  expect_neighbours_match(sums);
  expect_neighbours_match(gathers);
  for (uint32_t place = 0; place < nodes; ++place) {
    EXPECT_TRUE(whole[place].returns_sums);
    EXPECT_FALSE(sums[place].returns_sums);
    EXPECT_TRUE(gathers[place].returns_sums);
    EXPECT_TRUE(one_owner_each(sums[place], nodes) && one_owner_each(gathers[place], nodes));
    EXPECT_EQ(sums[place].parts, nodes - 1);
    EXPECT_EQ(gathers[place].parts, 0U);
    EXPECT_EQ(gathers[place].segments[place].sum_to.size(), nodes - 1);
    SegmentWorld world(sums, place, 1);
    world.run();
    expect_complete(world.sum_at(place), nodes);
  }
}

TEST_P(RingRoute, DirectAllAddAllInTheOrderOfThePlaces) {
  const uint32_t nodes = GetParam();
  const Routes routes = all_places(nodes, direct_route);
  const auto sent = expect_all_reduced(routes);
  expect_all_begin(routes);
  expect_neighbours_match(routes);
  EXPECT_EQ(sent, std::vector<uint32_t>(nodes, nodes - 1));
  EXPECT_EQ(routes[0].segments[0].own_part_to.front(), 1U);
  EXPECT_EQ(routes[nodes - 1].segments[0].own_part_to.front(), 0U);
}

TEST_P(RingRoute, ByTwoHopsTheOwnerAddsInTheOrderOfTheRing) {
  const uint32_t nodes = GetParam();
  const Routes routes = all_places(nodes, two_hops_route);
  const auto sent = expect_all_reduced(routes);
  expect_all_begin(routes);
  expect_neighbours_match(routes);
  EXPECT_EQ(sent, std::vector<uint32_t>(nodes, 2 * (nodes - 1))) << "as many bytes as the ring";
  for (uint32_t place = 0; place < nodes; ++place) {
    const SegmentRoute& own = routes[place].segments[place];
    for (uint32_t part = 0; part < nodes - 1; ++part)
      EXPECT_EQ(own.parts_from[part], (place + 1 + part) % nodes);
    EXPECT_EQ(own.sum_to.front(), (place + 1) % nodes) << "not all to the same one at once";
    EXPECT_EQ(routes[place].first_segment, (place + 1) % nodes);
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, RingRoute, testing::Range(2U, 9U));

// A change here changes the bits of results: two versions of braid would give different ones.
TEST(RouteOrder, OfAdditionsStays) {
  const auto sum_of = [](const Routes& routes, uint32_t segment) {
    SegmentWorld world(routes, segment, 1);
    world.run();
    return world.sum_at(0);
  };
  EXPECT_EQ(sum_of(all_places(4, ring_route), 0), "(0 (3 (2 1)))");
  EXPECT_EQ(sum_of(all_places(4, ring_route), 2), "(2 (1 (0 3)))");
  EXPECT_EQ(sum_of(all_places(4, direct_route), 0), "0 1 2 3 ");
  EXPECT_EQ(sum_of(halving(4), 2), "((2 3) (0 1))");
  EXPECT_EQ(sum_of(halving(5), 0), "(((0 4) 1) (2 3))");
  EXPECT_EQ(sum_of(all_places(4, two_hops_route), 2), "(((2 3) 0) 1)");
  EXPECT_EQ(sum_of(hierarchical(2, 2), 1), "((1 0) (3 2))");
}

TEST(BasicRoutes, OfOneNodeGoNowhere) {
  const auto routes = basic_routes(1, 0);
  EXPECT_EQ(routes->all_reduce.segments.size(), 1U);
  EXPECT_TRUE(routes->all_reduce.segments[0].is_owner());
  EXPECT_TRUE(routes->gather.targets.empty());
}

class HalvingRoute : public testing::TestWithParam<uint32_t> {};

TEST_P(HalvingRoute, SumsAllPartsOnceInOneOrder) {
  const uint32_t nodes = GetParam();
  const Routes routes = halving(nodes);
  const auto sent = expect_all_reduced(routes);
  expect_all_begin(routes);
  expect_neighbours_match(routes);
  const bool is_power_of_two = (nodes & (nodes - 1)) == 0;
  for (uint32_t place = 0; place < nodes && is_power_of_two; ++place) {
    EXPECT_EQ(sent[place], 2 * (nodes - 1)) << "as many bytes as around the ring";
    EXPECT_EQ(1U << routes[place].targets.size(), nodes) << "a partner for each round";
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, HalvingRoute, testing::Range(2U, 34U));

TEST(HalvingRouteShape, NodesBeyondThePowerOfTwoSendAllToOne) {
  const Routes routes = halving(6);
  for (const uint32_t place : {4U, 5U}) {
    EXPECT_TRUE(routes[place].begins_others.empty());
    EXPECT_EQ(routes[place].targets, std::vector<uint32_t>{place - 4});
    EXPECT_EQ(routes[place].segments.size(), 4u);
  }
  EXPECT_FALSE(routes[0].begins_others.empty());
}

TEST(HalvingRouteShape, MostBytesGoToTheNearestPlace) {
  const Route route = halving_route(8, 3);
  std::map<uint32_t, int> parts;
  for (const SegmentRoute& segment_route : route.segments) {
    if (segment_route.part_to) ++parts[*segment_route.part_to];
  }
  EXPECT_EQ(parts, (std::map<uint32_t, int>{{2, 4}, {1, 2}, {7, 1}}));
}

class HierarchicalRoute : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(HierarchicalRoute, SumsAllPartsOnceInOneOrder) {
  const auto [racks, rack_nodes] = GetParam();
  const uint32_t nodes = racks * rack_nodes;
  const Routes routes = hierarchical(racks, rack_nodes);
  const auto sent = expect_all_reduced(routes);
  expect_all_begin(routes);
  expect_neighbours_match(routes);
  for (uint32_t place = 0; place < nodes; ++place) {
    EXPECT_EQ(sent[place], 2 * (nodes - 1)) << "as many bytes as around the ring";
    uint32_t to_other_racks = 0;
    for (const SegmentRoute& route : routes[place].segments) {
      const auto is_elsewhere = [&, rack_nodes = rack_nodes](uint32_t other) {
        return other / rack_nodes != place / rack_nodes;
      };
      if (route.part_to && is_elsewhere(*route.part_to)) ++to_other_racks;
      to_other_racks += static_cast<uint32_t>(
          std::count_if(route.sum_to.begin(), route.sum_to.end(), is_elsewhere));
    }
    EXPECT_EQ(to_other_racks, 2 * (racks - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Racks, HierarchicalRoute,
                         testing::Values(std::pair{2U, 2U}, std::pair{2U, 3U}, std::pair{3U, 2U},
                                         std::pair{3U, 3U}, std::pair{2U, 5U}, std::pair{5U, 2U},
                                         std::pair{4U, 4U}, std::pair{4U, 8U}));

TEST(RouteOwners, AreOnePerNodeWhereSegmentsAreThePlaces) {
  for (uint32_t nodes = 2; nodes < 18; ++nodes) {
    SCOPED_TRACE(nodes);
    for (uint32_t place = 0; place < nodes; ++place) {
      EXPECT_TRUE(one_owner_each(ring_route(nodes, place), nodes));
      EXPECT_TRUE(one_owner_each(two_hops_route(nodes, place), nodes));
      EXPECT_FALSE(one_owner_each(direct_route(nodes, place), nodes));
      EXPECT_EQ(one_owner_each(halving_route(nodes, place), nodes), std::has_single_bit(nodes));
      if (nodes % 3 == 0 && nodes > 3) {
        EXPECT_TRUE(one_owner_each(hierarchical_route(3, nodes / 3, place), nodes));
        EXPECT_TRUE(one_owner_each(hierarchical_route(nodes / 3, 3, place), nodes));
      }
    }
  }
  EXPECT_TRUE(one_owner_each(basic_routes(1, 0)->all_reduce, 1));
  Route other = ring_route(3, 0);
  std::swap(other.segments[0], other.segments[1]);
  EXPECT_FALSE(one_owner_each(other, 3)) << "as many segments, but of other places";
}

}  // namespace
}  // namespace braid::test

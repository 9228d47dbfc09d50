// SPDX-License-Identifier: Apache-2.0
// What operations take whose owners are fixed; for the others see operation_table_algorithm_test.
#include "operation/algorithm_choice.h"

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"

namespace braid {
namespace {

class AlgorithmOfFixedOwners : public testing::Test {
 protected:
  explicit AlgorithmOfFixedOwners(uint32_t nodes = 4) {
    ring_->nodes = ring_->world_size = nodes;
    ring_->ranks_of_node.assign(nodes, 1);
    ring_->unit_bytes = 8 << 20;
    ring_->routes = basic_routes(nodes, 0);
  }
  Operation chosen(uint64_t count, const TransferSettings* settings = nullptr,
                   Halves halves = Halves::Both) {
    auto owners = std::make_shared<FixedOwners>();
    owners->append(7, count);
    Operation operation;
    operation.count = count;
    operation.ring = ring_;
    operation.fixed_owners = std::move(owners);
    operation.halves = halves;
    choose_algorithm(operation, settings, 99);
    EXPECT_FALSE(operation.is_direct || is_early(operation));
    EXPECT_TRUE(one_owner_each(braid::route_of(operation), ring_->nodes));
    return operation;
  }
  const Route* route_of(uint64_t count) { return chosen(count).route; }

  const std::shared_ptr<Ring> ring_ = std::make_shared<Ring>();
};

class AlgorithmOfFixedOwnersAmongSix : public AlgorithmOfFixedOwners {
 protected:
  AlgorithmOfFixedOwnersAmongSix() : AlgorithmOfFixedOwners(6) {}
};

TEST_F(AlgorithmOfFixedOwners, IsNeverDirect) {
  ring_->direct_bytes = 4096;
  EXPECT_EQ(route_of(1), nullptr);
  EXPECT_EQ(route_of(1024), nullptr);
  TransferSettings settings;
  settings.direct_bytes = 8192;
  EXPECT_EQ(chosen(1024, &settings).route, nullptr);
}

TEST_F(AlgorithmOfFixedOwners, FollowsFromTheSizeOtherwise) {
  ring_->two_hops = std::make_shared<Route>(two_hops_route(4, 0));
  ring_->two_hops_bytes = 4000;
  ring_->halving = std::make_shared<Route>(halving_route(4, 0));
  ring_->halving_bytes = 8000;
  ring_->hierarchical = std::make_shared<Route>(hierarchical_route(2, 2, 0));
  EXPECT_EQ(route_of(1000), ring_->two_hops.get()) << "not early, although it is large enough";
  EXPECT_EQ(route_of(2000), ring_->halving.get());
  EXPECT_EQ(route_of(2001), ring_->hierarchical.get());
  ring_->hierarchical.reset();
  EXPECT_EQ(route_of(2001), nullptr);
}

TEST_F(AlgorithmOfFixedOwners, OfHalvesGoesStraightOrAroundTheRing) {
  const auto half = [&](uint64_t count, Halves halves) {
    return chosen(count, nullptr, halves).route;
  };
  EXPECT_EQ(half(1000, Halves::ReduceScatter), &ring_->routes->reduce_scatter);
  EXPECT_EQ(half(1000, Halves::Gather), &ring_->routes->gather);
  ring_->two_hops = std::make_shared<Route>(two_hops_route(4, 0));
  ring_->two_hops_bytes = 4000;
  ring_->halving = std::make_shared<Route>(halving_route(4, 0));
  ring_->halving_bytes = 8000;
  EXPECT_EQ(half(1000, Halves::ReduceScatter), &ring_->routes->two_hops_reduce_scatter);
  EXPECT_EQ(half(1000, Halves::Gather), &ring_->routes->two_hops_gather);
  EXPECT_EQ(half(1001, Halves::ReduceScatter), &ring_->routes->reduce_scatter);
  EXPECT_EQ(half(1001, Halves::Gather), &ring_->routes->gather);
}

TEST_F(AlgorithmOfFixedOwners, OfOneNodeGoesNowhere) {
  *ring_ = {};
  ring_->routes = basic_routes(1, 0);
  EXPECT_EQ(route_of(1000), nullptr);
}

TEST_F(AlgorithmOfFixedOwnersAmongSix, IsNotByHalvesWhereNotAllNodesOwnASegment) {
  ring_->halving = std::make_shared<Route>(halving_route(6, 0));
  ring_->halving_bytes = 8000;
  EXPECT_EQ(route_of(1000), nullptr);
  ring_->hierarchical = std::make_shared<Route>(hierarchical_route(2, 3, 0));
  EXPECT_EQ(route_of(1000), ring_->hierarchical.get());
}

}  // namespace
}  // namespace braid

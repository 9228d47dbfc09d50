// SPDX-License-Identifier: Apache-2.0
// What fixed owners do not allow. What they do, ../update/engine_updates_test.cpp shows.
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"
#include "engine_shapes.h"

namespace braid::test {
namespace {

void start_with_fixed_owners(WorldOptions options, Collective collective) {
  options.adjust = [](Operation& one) {
    auto owners = std::make_shared<FixedOwners>();
    owners->append(0, one.count);
    one.fixed_owners = std::move(owners);
  };
  EngineWorld world(std::move(options), 1);
  world.add({collective, DataType::Float32, Reduction::Sum, 100});
  world.engine(0, 0).start(world.operation_of(0, 0));
}

const std::vector<uint32_t> kThreeNodes = {1, 1, 1};

TEST(FixedOwnersDeathTest, AreThoseOfWholeAllReducesWithASegmentForEachNode) {
  for (const auto& [shape, collective] :
       {std::pair{Shape{"direct", kThreeNodes, nullptr, true}, Collective::AllReduce},
        {Shape{"halving", kThreeNodes, halving_route}, Collective::AllReduce},
        {Shape{"early", kThreeNodes, two_hops_route, false, true}, Collective::AllReduce},
        {Shape{"broadcast", kThreeNodes, nullptr}, Collective::Broadcast}}) {
    EXPECT_DEATH(start_with_fixed_owners(options_of(shape, 1), collective), "fixed owners are for")
        << shape.name;
  }
}

TEST(FixedOwners, GoAroundTheRing) {
  start_with_fixed_owners(options_of({"ring", kThreeNodes, nullptr}, 1), Collective::AllReduce);
}

}  // namespace
}  // namespace braid::test

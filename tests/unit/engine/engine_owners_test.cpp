// SPDX-License-Identifier: Apache-2.0
// A set whose owners are fixed, for a step that keeps state for each of its elements.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"
#include "engine/owner_step.h"
#include "engine_world.h"

namespace braid::test {
namespace {

struct OwnersShape {
  std::string name;
  std::vector<uint32_t> ranks_of_node;
  std::function<Route(uint32_t, uint32_t)> route;  // nullptr: the ring's
};

std::function<Route(uint32_t, uint32_t)> by_racks_of(uint32_t rack_nodes) {
  return [rack_nodes](uint32_t nodes, uint32_t place) {
    return hierarchical_route(nodes / rack_nodes, rack_nodes, place);
  };
}

const std::vector<OwnersShape> kOwnersShapes = {{"one_node", {2}, nullptr},
                                                {"ring_2", {1, 2}, nullptr},
                                                {"ring_4", {2, 1, 1, 3}, nullptr},
                                                {"ring_5", {1, 1, 2, 1, 1}, nullptr},
                                                {"halving_2", {1, 2}, halving_route},
                                                {"halving_4", {2, 1, 1, 3}, halving_route},
                                                {"two_hops_3", {1, 1, 2}, two_hops_route},
                                                {"two_hops_4", {2, 1, 1, 3}, two_hops_route},
                                                {"racks_2x2", {1, 2, 1, 1}, by_racks_of(2)},
                                                {"racks_2x3", {1, 1, 1, 2, 1, 1}, by_racks_of(3)},
                                                {"racks_3x2", {1, 1, 2, 1, 1, 1}, by_racks_of(2)}};

// Its state: in which steps each element of the set came to each node.
class CountingStep final : public OwnerStep {
 public:
  StepOutcome apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                    StepEnd end) override {
    const uint64_t first = first_element_of(operation, extent);
    for (uint64_t i = 0; i < extent.bytes / element_bytes(operation.dtype); ++i)
      steps_[{first + i, operation.ring->self}].push_back(operation.key.step);
    return AverageStep().apply(operation, extent, bytes, std::move(end));
  }
  // By element and node.
  const std::map<std::pair<uint64_t, uint32_t>, std::vector<uint64_t>>& steps() const {
    return steps_;
  }

 private:
  std::map<std::pair<uint64_t, uint32_t>, std::vector<uint64_t>> steps_;
};

class EngineOwners : public testing::TestWithParam<OwnersShape> {
 protected:
  struct Tensor {
    DataType dtype;
    uint64_t first;  // of its elements in the set
    uint64_t elements;
  };
  static constexpr uint64_t kSteps = 4;

  EngineOwners() {
    for (const auto& [dtype, elements] : {std::pair{DataType::Float32, 1},
                                          {DataType::Float32, 700},
                                          {DataType::BFloat16, 65},
                                          {DataType::BFloat16, 0},
                                          {DataType::BFloat16, 330},
                                          {DataType::Float64, 40},
                                          {DataType::Int64, 3},
                                          {DataType::Float32, 513},
                                          {DataType::Float32, 17},
                                          {DataType::Float32, 100}}) {
      tensors_.push_back({dtype, elements_, static_cast<uint64_t>(elements)});
      elements_ += static_cast<uint64_t>(elements);
    }
  }

  static WorldOptions options_of(uint64_t seed) {
    WorldOptions options;
    options.ranks_of_node = GetParam().ranks_of_node;
    options.route = GetParam().route;
    options.io_loops = 1 + static_cast<uint32_t>(seed / 3 % 2);
    options.streams = 1 + static_cast<uint32_t>(seed % 2);
    options.hostility.submit_pulls = seed % 3 == 0;
    return options;
  }

  // All steps, each with a plan and settings of its own.
  void run_steps(uint64_t seed, uint64_t stripe_elements, std::shared_ptr<OwnerStep> step) {
    Random random(seed);
    std::map<uint64_t, std::shared_ptr<const FixedOwners>> owners;  // by key
    std::vector<OperationSpec> specs;
    for (uint64_t at = 0; at < kSteps; ++at) {
      for (const auto& [spec, held] : plan(at, stripe_elements, random)) {
        owners[0x7e45 + specs.size() * 31] = held;
        specs.push_back(spec);
      }
    }
    WorldOptions options = options_of(seed);
    options.adjust = [&](Operation& one) {
      one.owner_step = step;
      one.fixed_owners = owners.at(one.key.tensor);
      one.unit_bytes = std::array{64, 640, 8 << 20, 1000}[(one.key.step + seed) % 4];
      one.chunk_bytes = std::array{128, 64, 1000}[(one.key.step + seed) % 3];
    };
    EngineWorld world(options, seed);
    for (const OperationSpec& spec : specs) world.add(spec);
    ASSERT_TRUE(world.run()) << seed;
    world.expect_all_ended();
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
  }

  std::vector<Tensor> tensors_;
  uint64_t elements_ = 0;

 private:
  using Group = std::pair<OperationSpec, std::shared_ptr<const FixedOwners>>;

  // Tensors that were ready in another order than they are registered in, or just in that one, and
  // groups of one dtype.
  std::vector<Group> plan(uint64_t step, uint64_t stripe_elements, Random& random) const {
    std::vector<Tensor> order = tensors_;
    for (size_t i = 1; i < order.size() && step % 2 == 1; ++i) {
      if (chance(random, 0.4)) std::swap(order[i - 1], order[i]);
    }
    std::vector<Group> groups;
    for (size_t begin = 0; begin < order.size();) {
      auto owners = std::make_shared<FixedOwners>();
      owners->stripe_elements = stripe_elements;
      uint64_t count = 0;
      size_t end = begin;
      do {
        owners->append(order[end].first, order[end].elements);
        count += order[end].elements;
        ++end;
      } while (end < order.size() && order[end].dtype == order[begin].dtype &&
               !chance(random, 0.3));
      const auto pieces = static_cast<uint32_t>(end - begin);
      groups.push_back({{Collective::AllReduce, order[begin].dtype, Reduction::Average, count, 0, 1,
                         step, pieces},
                        std::move(owners)});
      begin = end;
    }
    return groups;
  }
};

TEST_P(EngineOwners, GetTheSameElementsInEveryStep) {
  const auto nodes = static_cast<uint32_t>(GetParam().ranks_of_node.size());
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const uint64_t stripe_elements = std::array{33, 16, 5, 250, 3000}[seed % 5];
    auto step = std::make_shared<CountingStep>();
    run_steps(seed, stripe_elements, step);
    if (HasFailure()) return;
    ASSERT_EQ(step->steps().size(), elements_) << "each element has one owner";
    for (const auto& [at, came] : step->steps()) {
      const auto [element, node] = at;
      ASSERT_EQ(node, element / stripe_elements % nodes) << "element " << element;
      std::vector<uint64_t> sorted = came;
      std::sort(sorted.begin(), sorted.end());
      std::vector<uint64_t> once(kSteps);
      std::iota(once.begin(), once.end(), 0);
      ASSERT_EQ(sorted, once) << "element " << element;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineOwners, testing::ValuesIn(kOwnersShapes),
                         [](const auto& param) { return param.param.name; });

// --- what fixed owners do not allow ---

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

WorldOptions of_three_nodes() {
  WorldOptions options;
  options.ranks_of_node = {1, 1, 1};
  return options;
}

constexpr auto kRefused = "fixed owners are for";

TEST(FixedOwnersDeathTest, AreNotThoseOfADirectOperation) {
  WorldOptions options = of_three_nodes();
  options.direct_bytes = 1 << 20;
  EXPECT_DEATH(start_with_fixed_owners(options, Collective::AllReduce), kRefused);
}

TEST(FixedOwnersDeathTest, AreMoreThanTheSegmentsByHalves) {
  WorldOptions options = of_three_nodes();
  options.route = halving_route;
  EXPECT_DEATH(start_with_fixed_owners(options, Collective::AllReduce), kRefused);
}

TEST(FixedOwnersDeathTest, AreNotThoseOfAnEarlyOperation) {
  WorldOptions options = of_three_nodes();
  options.route = two_hops_route;
  options.early_from = 1;
  EXPECT_DEATH(start_with_fixed_owners(options, Collective::AllReduce), kRefused);
}

TEST(FixedOwnersDeathTest, AreNotThoseOfOtherCollectives) {
  EXPECT_DEATH(start_with_fixed_owners(of_three_nodes(), Collective::Broadcast), kRefused);
}

TEST(FixedOwners, GoAroundTheRing) {
  start_with_fixed_owners(of_three_nodes(), Collective::AllReduce);
}

}  // namespace
}  // namespace braid::test

// SPDX-License-Identifier: Apache-2.0
// Sharded optimizers on the engine: by every route that they may take, with plans and settings that
// change in every step, lost flows and repeated chunks, they do what one node would do that had the
// whole set.
#include <algorithm>
#include <array>
#include <map>

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"
#include "engine_shapes.h"
#include "reference.h"
#include "update/optimizer_step.h"
#include "update_reference.h"

namespace braid::test {
namespace {

const std::vector<Shape> kUpdatesShapes = {{"one_node", {2}, nullptr},
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

struct SetTensor {
  DataType dtype;
  uint64_t first;  // of its elements in the set
  uint64_t elements;
};

// One operation of a step.
struct TensorGroup {
  std::vector<SetTensor> tensors;
  uint64_t elements = 0;
};

// What runs: all operations of one step, and what the owners do in them.
struct StepPlan {
  uint64_t step = 0;
  std::vector<TensorGroup> groups;
  std::function<UpdateStep(const SetTensor&)> update;  // nullptr: nothing; sums are sums
  bool is_added = true;
  uint32_t divisor = 1;
};

template <typename T>
struct StateType {
  static constexpr std::array kTensors = {DataType::Float32, DataType::BFloat16, DataType::Float16};
};
template <>
struct StateType<double> {
  static constexpr std::array kTensors = {DataType::Float64, DataType::Float64, DataType::Float64};
};

// A set of tensors and its shards: `T` is the state's type.
template <typename T>
class ShardedSet {
 public:
  ShardedSet(const Shape& shape, uint64_t seed) : shape_(shape), seed_(seed), random_(seed) {
    constexpr auto kTypes = StateType<T>::kTensors;
    for (const auto& [type, elements] : {std::pair{0, 1},
                                         {0, 700},
                                         {1, 65},
                                         {1, 0},
                                         {1, 330},
                                         {2, 140},
                                         {0, 513},
                                         {0, 17},
                                         {2, 100}}) {
      tensors_.push_back(
          {kTypes.at(static_cast<size_t>(type)), elements_, static_cast<uint64_t>(elements)});
      elements_ += static_cast<uint64_t>(elements);
    }
    const uint64_t stripe = std::array{33, 16, 5, 250, 3000}[seed % 5];
    for (uint32_t place = 0; place < nodes(); ++place) {
      shards_.push_back(
          *ShardState::create({elements_, stripe, nodes(), place}, 3, tensors_[0].dtype));
    }
  }

  uint64_t elements() const { return elements_; }
  uint32_t world_size() const {
    return std::accumulate(shape_.ranks_of_node.begin(), shape_.ranks_of_node.end(), 0U);
  }

  // Groups of one dtype; in odd steps in another order than that of the set.
  StepPlan plan(uint64_t step) {
    std::vector<SetTensor> order = tensors_;
    for (size_t i = 1; i < order.size() && step % 2 == 1; ++i) {
      if (chance(random_, 0.4)) std::swap(order[i - 1], order[i]);
    }
    StepPlan plan;
    plan.step = step;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool is_new = i == 0 || order[i].dtype != order[i - 1].dtype || chance(random_, 0.3);
      if (is_new) plan.groups.emplace_back();
      plan.groups.back().tensors.push_back(order[i]);
      plan.groups.back().elements += order[i].elements;
    }
    return plan;
  }

  // The results of the groups, the same at all nodes.
  std::vector<std::vector<uint8_t>> run(const StepPlan& plan, uint64_t run_seed) {
    inputs_.assign(plan.groups.size(), {});
    EngineWorld world(options_of(plan, run_seed), run_seed);
    for (const TensorGroup& group : plan.groups) {
      OperationSpec spec{Collective::AllReduce, group.tensors[0].dtype, Reduction::Sum,
                         group.elements};
      spec.step = plan.step;
      spec.pieces = static_cast<uint32_t>(group.tensors.size());
      spec.is_added = plan.is_added;
      world.add(spec);
    }
    EXPECT_TRUE(world.run());
    EXPECT_EQ(world.counters().chunks_malformed, 0U);
    world.expect_no_memory_held(1);
    std::vector<std::vector<uint8_t>> results;
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      results.push_back(world.result(i, 0));
      for (uint32_t node = 1; node < nodes(); ++node) {
        EXPECT_EQ(world.result(i, node), results.back()) << "group " << i << ", node " << node;
      }
    }
    return results;
  }

  // By group and node: what the node's first rank gave in the last run.
  const std::vector<std::map<uint32_t, std::vector<uint8_t>>>& inputs() const { return inputs_; }
  uint32_t owner_of(uint64_t element) const {
    return static_cast<uint32_t>(element / shards_[0]->layout().stripe_elements % nodes());
  }

  // The state of all owners together, by element.
  ReferenceState<T> state() const {
    ReferenceState<T> all(elements_);
    for (uint64_t e = 0; e < elements_; ++e) {
      ShardState& owner = *shards_[owner_of(e)];
      all.weights[e] = owner.values<T>(StateSlot::Weights, e, 1)[0];
      all.first[e] = owner.values<T>(StateSlot::First, e, 1)[0];
      all.second[e] = owner.values<T>(StateSlot::Second, e, 1)[0];
    }
    return all;
  }

 private:
  uint32_t nodes() const { return static_cast<uint32_t>(shape_.ranks_of_node.size()); }

  WorldOptions options_of(const StepPlan& plan, uint64_t run_seed) {
    WorldOptions options = test::options_of(shape_, run_seed);
    // Loads and fetches add nothing, and go by the second half of a route alone.
    if (!plan.is_added && nodes() > 1) options.route = ring_gather_route;
    options.streams = 1 + static_cast<uint32_t>(run_seed % 2);
    options.hostility = {0.02, 0.2, run_seed % 3 == 0};
    options.adjust = [this, &plan](Operation& one) { adjust(plan, one); };
    return options;
  }

  // Settings are of the step, not of the run.
  void adjust(const StepPlan& plan, Operation& one) {
    const size_t at = (one.key.tensor - 0x7e45) / 31;
    const TensorGroup& group = plan.groups[at];
    one.unit_bytes = std::array{64, 640, 8 << 20, 1000}[(plan.step + seed_) % 4];
    one.chunk_bytes = std::array{128, 64, 1000}[(plan.step + seed_) % 3];
    const ShardLayout& layout = shards_[one.ring->self]->layout();
    auto owners = std::make_shared<FixedOwners>();
    owners->stripe_elements = layout.stripe_elements;
    for (const SetTensor& tensor : group.tensors) owners->append(tensor.first, tensor.elements);
    one.fixed_owners = std::move(owners);
    if (plan.update == nullptr) return;
    std::vector<OptimizerStep::Member> members;
    for (const SetTensor& tensor : group.tensors) {
      members.push_back({tensor.elements, plan.update(tensor)});
    }
    keep_input(at, one);
    const UpdateAction action = members[0].update.action;
    if (action == UpdateAction::Load)
      one.contribution = std::make_shared<StateContribution>(one.inputs[0]);
    if (action == UpdateAction::Fetch) one.contribution = std::make_shared<StateContribution>();
    one.owner_step =
        std::make_shared<OptimizerStep>(shards_[one.ring->self], std::move(members), plan.divisor);
  }

  void keep_input(size_t group, const Operation& one) {
    const uint64_t bytes = one.count * element_bytes(one.dtype);
    std::vector<uint8_t> input(bytes);
    for (uint64_t done = 0; done < bytes;) {
      uint64_t piece = 0;
      const uint8_t* const from = one.inputs[0].at(done, bytes - done, piece);
      std::copy_n(from, piece, input.begin() + static_cast<ptrdiff_t>(done));
      done += piece;
    }
    inputs_[group][one.ring->self] = std::move(input);
  }

  const Shape shape_;
  const uint64_t seed_;
  Random random_;
  std::vector<SetTensor> tensors_;
  uint64_t elements_ = 0;
  std::vector<std::shared_ptr<ShardState>> shards_;
  std::vector<std::map<uint32_t, std::vector<uint8_t>>> inputs_;
};

// Calls each(tensor, offset in the group's bytes) for all tensors of a group.
template <class Each>
void for_tensors(const TensorGroup& group, const Each& each) {
  uint64_t offset = 0;
  for (const SetTensor& tensor : group.tensors) {
    each(tensor, offset);
    offset += tensor.elements * element_bytes(tensor.dtype);
  }
}

// Loads or fetches each slot in a step of its own. Calls each(slot, tensor, the inputs of its group
// by node, the tensor's offset there, its result).
template <typename T, class Each>
void move_all(ShardedSet<T>& set, UpdateAction action, uint64_t& step, uint64_t seed,
              const Each& each) {
  for (const StateSlot slot : {StateSlot::Weights, StateSlot::First, StateSlot::Second}) {
    StepPlan plan = set.plan(step++);
    plan.is_added = false;
    plan.update = [action, slot](const SetTensor&) {
      UpdateStep update;
      update.action = action;
      update.slot = slot;
      update.count = 0;
      return update;
    };
    const auto results = set.run(plan, seed);
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      for_tensors(plan.groups[i], [&](const SetTensor& tensor, uint64_t offset) {
        each(slot, tensor, set.inputs()[i], offset, results[i].data() + offset);
      });
    }
  }
}

// Loads all slots, and gives the reference the same values.
template <typename T>
void load_all(ShardedSet<T>& set, ReferenceState<T>& reference, uint64_t& step, uint64_t seed) {
  move_all(set, UpdateAction::Load, step, seed,
           [&](StateSlot slot, const SetTensor& tensor, const auto& inputs, uint64_t offset,
               const uint8_t* result) {
             for (uint64_t e = 0; e < tensor.elements; ++e) {
               T& value = reference.of(slot)[tensor.first + e];
               const uint8_t* const given =
                   inputs.at(set.owner_of(tensor.first + e)).data() + offset;
               value = static_cast<T>(element_as_double(tensor.dtype, given, e));
               ASSERT_EQ(element_as_double(tensor.dtype, result, e), value)
                   << "element " << tensor.first + e << " is not what its owner was given";
             }
           });
}

template <typename T>
void fetch_all(ShardedSet<T>& set, ReferenceState<T>& reference, uint64_t& step, uint64_t seed) {
  move_all(
      set, UpdateAction::Fetch, step, seed,
      [&](StateSlot slot, const SetTensor& tensor, const auto&, uint64_t, const uint8_t* result) {
        std::vector<uint8_t> expected(tensor.elements * element_bytes(tensor.dtype));
        for (uint64_t e = 0; e < tensor.elements; ++e)
          store_double(tensor.dtype, reference.of(slot)[tensor.first + e], expected.data(), e);
        ASSERT_TRUE(same_elements(tensor.dtype, result, expected.data(), tensor.elements));
      });
}

// One update: first the engine's sums, then what all get; and the reference with these sums.
template <typename T>
void update_once(ShardedSet<T>& set, ReferenceState<T>& reference, StepPlan plan, uint64_t seed) {
  const auto update = std::exchange(plan.update, nullptr);
  auto expected = set.run(plan, seed + 1000);
  plan.update = update;
  const auto results = set.run(plan, seed);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    for_tensors(plan.groups[i], [&](const SetTensor& tensor, uint64_t offset) {
      reference_update(tensor.dtype, update(tensor), plan.divisor, reference, tensor.first,
                       tensor.elements, expected[i].data() + offset);
    });
    ASSERT_EQ(results[i], expected[i]) << "step " << plan.step << ", group " << i;
  }
  ASSERT_EQ(set.state(), reference) << "step " << plan.step;
}

class EngineUpdates : public testing::TestWithParam<Shape> {
 protected:
  static constexpr uint64_t kUpdates = 5;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr uint64_t kSeeds = 1;  // a shape takes a sanitizer seconds
#else
  static constexpr uint64_t kSeeds = 5;
#endif

  // Each tensor learns at a rate of its own.
  template <typename T>
  static void expect_reference(UpdateStep (*make)(double rate), UpdateAction action) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(seed);
      ShardedSet<T> set(GetParam(), seed);
      ReferenceState<T> reference(set.elements());
      uint64_t step = 0;
      load_all(set, reference, step, seed);
      for (uint64_t count = 1; count <= kUpdates; ++count) {
        if (HasFailure()) return;
        StepPlan plan = set.plan(step++);
        plan.divisor = set.world_size();
        plan.update = [make, count, action](const SetTensor& tensor) {
          UpdateStep update = make(0.01 / static_cast<double>(1 + tensor.elements % 7));
          update.count = count;
          update.action = action;
          return update;
        };
        update_once(set, reference, std::move(plan), 10 * seed + count);
      }
      if (HasFailure()) return;
      fetch_all(set, reference, step, seed);
    }
  }

  static UpdateStep momentum_sgd(double rate) { return sgd(rate, 0.9); }
  static UpdateStep adamw(double rate) { return adam(rate, 0.1, kUpdateDecoupledDecay); }
  static UpdateStep decayed_lion(double rate) { return lion(rate, 0.1); }
};

TEST_P(EngineUpdates, by_sgd_with_momentum_are_those_of_one_node) {
  expect_reference<float>(momentum_sgd, UpdateAction::Apply);
}

TEST_P(EngineUpdates, by_adamw_are_those_of_one_node) {
  expect_reference<float>(adamw, UpdateAction::Apply);
}

TEST_P(EngineUpdates, by_lion_are_those_of_one_node) {
  expect_reference<float>(decayed_lion, UpdateAction::Push);
}

TEST_P(EngineUpdates, of_doubles_are_those_of_one_node) {
  expect_reference<double>(adamw, UpdateAction::Apply);
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineUpdates, testing::ValuesIn(kUpdatesShapes),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace braid::test

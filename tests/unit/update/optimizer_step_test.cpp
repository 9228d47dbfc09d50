// SPDX-License-Identifier: Apache-2.0
#include "update/optimizer_step.h"

#include <random>

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"
#include "reference.h"
#include "update_reference.h"

namespace braid::test {
namespace {

constexpr uint64_t kStripe = 64;
constexpr uint32_t kNodes = 3;
constexpr uint32_t kPlace = 1;
constexpr ShardLayout kLayout{1000, kStripe, kNodes, kPlace};

// An operation on the elements of the given ranges.
Operation operation_of(std::initializer_list<ElementRanges::Range> ranges,
                       DataType dtype = DataType::Float32) {
  auto ring = std::make_shared<Ring>();
  ring->nodes = kNodes;
  ring->self = kPlace;
  auto owners = std::make_shared<FixedOwners>();
  owners->stripe_elements = kStripe;
  Operation operation;
  operation.dtype = dtype;
  for (const auto& range : ranges) {
    owners->append(range.first, range.elements);
    operation.count += range.elements;
  }
  operation.ring = std::move(ring);
  operation.fixed_owners = std::move(owners);
  return operation;
}

Extent elements(uint64_t first, uint64_t count, DataType dtype = DataType::Float32) {
  return {first * element_bytes(dtype), count * element_bytes(dtype)};
}

std::vector<float> numbers(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> result(count);
  for (float& one : result) one = normal(random);
  return result;
}

uint8_t* bytes_in(std::vector<float>& values) { return reinterpret_cast<uint8_t*>(values.data()); }

StepOutcome apply(OptimizerStep& step, const Operation& operation, const Extent& extent,
                  std::vector<float>& sums) {
  return step.apply(operation, extent, bytes_in(sums), {});
}

UpdateStep move_of(UpdateAction action, StateSlot slot) {
  UpdateStep update;
  update.action = action;
  update.slot = slot;
  update.count = 0;
  return update;
}

// Elements 70 to 109 of the set, which this node owns: of three tensors, and one of them empty,
// each with a rate of its own.
TEST(OptimizerStep, takes_each_tensors_own_numbers) {
  const Operation operation = operation_of({{0, 70}, {70, 25}, {95, 500}});
  const auto state = *ShardState::create(kLayout, 2, DataType::Float32);
  const std::vector<UpdateStep> updates = {sgd(1, 0.9), sgd(0.5, 0.9), sgd(9, 0.9), lion(0.25)};
  OptimizerStep step(state,
                     {{70, updates[0]}, {25, updates[1]}, {0, updates[2]}, {500, updates[3]}}, 4);
  auto sums = numbers(46, 1);
  auto expected = sums;
  ReferenceState<float> reference(46);
  const auto part = [&](const UpdateStep& update, uint64_t begin, uint64_t count) {
    reference_update(DataType::Float32, update, 4, reference, begin, count,
                     bytes_in(expected) + begin * sizeof(float));
  };
  part(updates[0], 0, 6);
  part(updates[1], 6, 25);
  part(updates[3], 31, 15);
  EXPECT_EQ(apply(step, operation, elements(64, 46), sums), StepOutcome::Ended);
  EXPECT_EQ(sums, expected);
  for (uint64_t i = 0; i < 46; ++i) {
    EXPECT_EQ(state->values<float>(StateSlot::Weights, 64 + i, 1)[0], reference.weights[i]) << i;
    EXPECT_EQ(state->values<float>(StateSlot::First, 64 + i, 1)[0], reference.first[i]) << i;
  }
}

// Long enough for several pieces of a copy, and for a piece that is no whole vector.
constexpr uint64_t kLong = 2500;

std::vector<uint8_t> gradients_of(DataType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::vector<uint8_t> bytes(kLong * element_bytes(dtype));
  for (uint64_t i = 0; i < kLong; ++i) store_double(dtype, normal(random), bytes.data(), i);
  return bytes;
}

// All slots of all elements.
template <typename T>
std::vector<T> kept_by(ShardState& state) {
  std::vector<T> kept;
  for (const StateSlot slot : {StateSlot::Weights, StateSlot::First, StateSlot::Second}) {
    const auto values = state.values<T>(slot, 0, kLong);
    kept.insert(kept.end(), values.begin(), values.end());
  }
  return kept;
}

// An owner of everything, on which one step is taken before: it keeps what is not zero.
template <typename T>
void expect_estimate_of(DataType dtype, UpdateStep update) {
  SCOPED_TRACE(std::string(to_string(dtype)) + ": " + to_string(update));
  auto ring = std::make_shared<Ring>();
  ring->nodes = 1;
  auto owners = std::make_shared<FixedOwners>();
  owners->stripe_elements = kLong;
  owners->append(0, kLong);
  Operation operation;
  operation.dtype = dtype;
  operation.count = kLong;
  operation.ring = ring;
  operation.fixed_owners = owners;
  const auto state = *ShardState::create({kLong, kLong, 1, 0}, 3, dtype);
  const auto take = [&](UpdateAction action, std::vector<uint8_t> sums) {
    update.action = action;
    // Two tensors and two chunks, of which one has elements of both tensors.
    OptimizerStep step(state, {{1300, update}, {kLong - 1300, update}}, 4);
    const uint64_t cut = 1100;
    step.apply(operation, elements(0, cut, dtype), sums.data(), {});
    step.apply(operation, elements(cut, kLong - cut, dtype),
               sums.data() + cut * element_bytes(dtype), {});
    return sums;
  };
  take(UpdateAction::Apply, gradients_of(dtype, 1));
  ++update.count;
  const std::vector<T> before = kept_by<T>(*state);
  const auto estimated = take(UpdateAction::Estimate, gradients_of(dtype, 2));
  EXPECT_EQ(kept_by<T>(*state), before) << "an estimate changes nothing";
  EXPECT_EQ(take(UpdateAction::Estimate, gradients_of(dtype, 2)), estimated);
  EXPECT_EQ(take(UpdateAction::Apply, gradients_of(dtype, 2)), estimated);
  EXPECT_NE(kept_by<T>(*state), before);
}

TEST(OptimizerStep, estimates_the_bits_that_it_would_make_and_keeps_what_it_has) {
  for (const UpdateStep& update : all_updates()) {
    for (const DataType dtype : {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
      expect_estimate_of<float>(dtype, update);
    }
    expect_estimate_of<double>(DataType::Float64, update);
    UpdateStep pulled = update;
    pulled.flags |= kUpdatePullBFloat16;
    expect_estimate_of<float>(DataType::Float32, pulled);
  }
}

// SGD's momentum begins with the first gradient: it is not read, whatever lies there.
TEST(OptimizerStep, estimates_the_first_update_of_all) {
  const Operation operation = operation_of({{0, 1000}});
  const auto state = *ShardState::create(kLayout, 2, DataType::Float32);
  state->values<float>(StateSlot::First, 64, 1)[0] = 77;
  UpdateStep update = sgd(0.5, 0.9);
  update.action = UpdateAction::Estimate;
  OptimizerStep step(state, {{1000, update}}, 2);
  std::vector<float> sums(3, 4.0f);
  apply(step, operation, elements(64, 3), sums);
  EXPECT_EQ(sums, std::vector<float>(3, -1.0f));
  EXPECT_EQ(state->values<float>(StateSlot::First, 64, 1)[0], 77.0f);
  EXPECT_EQ(state->values<float>(StateSlot::Weights, 64, 1)[0], 0.0f);
}

TEST(OptimizerStepDeathTest, does_not_take_what_others_own) {
  const Operation operation = operation_of({{0, 1000}});
  const auto state = *ShardState::create(kLayout, 1, DataType::Float32);
  OptimizerStep step(state, {{1000, sgd(1)}}, 1);
  std::vector<float> sums(100);
  EXPECT_DEATH(apply(step, operation, elements(64, 65), sums), "of one stripe");
  EXPECT_DEATH(apply(step, operation, elements(60, 4), sums), "another owner");
  EXPECT_DEATH(apply(step, operation_of({{0, 100}, {200, 900}}), elements(90, 20), sums),
               "another owner");
}

TEST(OptimizerStepDeathTest, has_state_of_its_operation) {
  const auto state = *ShardState::create(kLayout, 2, DataType::Float32);
  EXPECT_DEATH(OptimizerStep(state, {{10, adam(1)}}, 1), "the optimizer's slots");
  EXPECT_DEATH(
      OptimizerStep(state, {{10, sgd(1)}, {10, move_of(UpdateAction::Fetch, StateSlot::First)}}, 1),
      "one action");
  OptimizerStep step(state, {{10, sgd(1)}}, 1);
  std::vector<float> sums(100);
  EXPECT_DEATH(apply(step, operation_of({{0, 1000}}, DataType::Float64), elements(64, 8), sums),
               "of the tensors' type");
  EXPECT_DEATH(apply(step, operation_of({{0, 1000}}), elements(64, 8), sums),
               "ends with its tensors");
}

TEST(StateContribution, is_the_first_ranks_input_whatever_has_come) {
  const auto values = numbers(100, 3);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  OperationInput input;  // its first 30 elements lie behind the others
  input.append(bytes + 70 * sizeof(float), 30 * sizeof(float));
  input.append(bytes, 70 * sizeof(float));
  StateContribution contribution(input);
  auto wire = numbers(20, 4);
  std::vector<float> out(20);
  contribution.reduce(elements(20, 20), bytes_in(wire), bytes_in(out), Store::Cached);
  std::vector<float> expected(values.begin() + 90, values.end());
  expected.insert(expected.end(), values.begin(), values.begin() + 10);
  EXPECT_EQ(out, expected);
  out.assign(20, 0);
  contribution.copy(elements(20, 20), bytes_in(out));
  EXPECT_EQ(out, expected);
  EXPECT_EQ(contribution.find(elements(20, 20)), nullptr);
}

TEST(StateContribution, without_an_input_leaves_things_as_they_are) {
  StateContribution contribution;
  auto wire = numbers(20, 4);
  auto out = numbers(20, 5);
  contribution.reduce(elements(0, 20), bytes_in(wire), bytes_in(out), Store::Streamed);
  contribution.copy(elements(0, 20), bytes_in(out));
  EXPECT_EQ(out, numbers(20, 5));
}

}  // namespace
}  // namespace braid::test

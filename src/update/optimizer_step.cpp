// SPDX-License-Identifier: Apache-2.0
#include "update/optimizer_step.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "engine/fixed_owners.h"
#include "update/state_bits.h"
#include "update/update_kernels.h"

namespace braid {
namespace {

template <class Value>
ShardValues<Value> values_of(ShardState& state, const UpdateStep& update,
                             const ElementRanges::Range& range) {
  const auto slot = [&](StateSlot which) {
    return state.values<Value>(which, range.first, range.elements).data();
  };
  ShardValues<Value> values;
  values.weights = slot(StateSlot::Weights);
  if (update.slots() > 1) values.first = slot(StateSlot::First);
  if (update.slots() > 2) values.second = slot(StateSlot::Second);
  return values;
}

uint8_t* slot_of(ShardState& state, StateSlot slot, const ElementRanges::Range& range) {
  if (state.is_float64()) {
    return reinterpret_cast<uint8_t*>(
        state.values<double>(slot, range.first, range.elements).data());
  }
  return reinterpret_cast<uint8_t*>(state.values<float>(slot, range.first, range.elements).data());
}

void take_step(const UpdateStep& update, uint32_t divisor, DataType dtype, uint64_t count,
               const ShardValues<float>& state, uint8_t* sums) {
  update_floats(dtype, update, divisor, count, state, sums);
}

void take_step(const UpdateStep& update, uint32_t divisor, DataType /*dtype*/, uint64_t count,
               const ShardValues<double>& state, uint8_t* sums) {
  update_doubles(update, divisor, count, state, sums);
}

// So many elements are estimated at a time: their copies stay in the nearest cache.
constexpr uint64_t kEstimatedAtATime = 1024;

// The step on a copy of the state, which then goes away: weights have the bits of a step that is
// kept, for no element's arithmetic depends on its neighbours.
template <class Value>
void estimate_step(const UpdateStep& update, uint32_t divisor, DataType dtype, uint64_t count,
                   const ShardValues<Value>& state, uint8_t* sums) {
  std::array<std::array<Value, kEstimatedAtATime>, kStateSlotCount> copies;
  for (uint64_t at = 0; at < count; at += kEstimatedAtATime) {
    const uint64_t taken = std::min(kEstimatedAtATime, count - at);
    const auto copied = [&](const Value* values, size_t slot) -> Value* {
      if (values == nullptr) return nullptr;
      std::copy_n(values + at, taken, copies[slot].begin());
      return copies[slot].data();
    };
    take_step(update, divisor, dtype, taken,
              ShardValues<Value>{copied(state.weights, 0), copied(state.first, 1),
                                 copied(state.second, 2)},
              sums + at * element_bytes(dtype));
  }
}

template <class Value>
void update_values(ShardState& state, const UpdateStep& update, uint32_t divisor, DataType dtype,
                   const ElementRanges::Range& range, uint8_t* bytes) {
  const ShardValues<Value> values = values_of<Value>(state, update, range);
  if (update.action == UpdateAction::Estimate) {
    estimate_step(update, divisor, dtype, range.elements, values, bytes);
  } else {
    take_step(update, divisor, dtype, range.elements, values, bytes);
  }
}

// Elements that follow one another in the set, of one tensor; `bytes` has their sums.
void apply_to(ShardState& state, const UpdateStep& update, uint32_t divisor, DataType dtype,
              const ElementRanges::Range& range, uint8_t* bytes) {
  switch (update.action) {
    case UpdateAction::Apply:
    case UpdateAction::Push:
    case UpdateAction::Estimate:
      if (state.is_float64()) {
        update_values<double>(state, update, divisor, dtype, range, bytes);
      } else {
        update_values<float>(state, update, divisor, dtype, range, bytes);
      }
      return;
    case UpdateAction::Load:  // what goes out is what has come
      return load_values(dtype, update.bits, bytes, range.elements,
                         slot_of(state, update.slot, range));
    case UpdateAction::Fetch:
      return fetch_values(dtype, update.bits, slot_of(state, update.slot, range), range.elements,
                          bytes);
  }
}

}  // namespace

OptimizerStep::OptimizerStep(std::shared_ptr<ShardState> state, std::vector<Member> members,
                             uint32_t divisor)
    : state_(std::move(state)), members_(std::move(members)), divisor_(divisor) {
  BRAID_ASSERT(divisor != 0, "an average over nobody");
  for (const Member& member : members_) {
    BRAID_ASSERT(member.update.slots() <= state_->slots(), "the state has the optimizer's slots");
    BRAID_ASSERT(member.update.action == members_.front().update.action,
                 "the tensors of an operation have one action");
  }
}

StepOutcome OptimizerStep::apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                                 StepEnd /*end*/) {
  BRAID_ASSERT(state_->is_float64() == (operation.dtype == DataType::Float64),
               "the state is of the tensors' type");
  BRAID_ASSERT(operation.fixed_owners->stripe_elements == state_->layout().stripe_elements &&
                   operation.ring->nodes == state_->layout().nodes,
               "the state is laid out as the owners are");
  const uint64_t element_size = element_bytes(operation.dtype);
  uint64_t at = extent.offset / element_size;  // in the operation
  uint64_t left = extent.bytes / element_size;
  uint64_t end_of_member = 0;
  for (const Member& member : members_) {
    end_of_member += member.elements;
    if (at >= end_of_member) continue;
    const uint64_t taken = std::min(left, end_of_member - at);
    for (const ElementRanges::Range range : operation.fixed_owners->of(at, taken)) {
      apply_to(*state_, member.update, divisor_, operation.dtype, range, bytes);
      bytes += range.elements * element_size;
    }
    at += taken;
    left -= taken;
    if (left == 0) break;
  }
  BRAID_ASSERT(left == 0, "an operation ends with its tensors");
  return StepOutcome::Ended;
}

void StateContribution::reduce(const Extent& extent, const uint8_t* /*wire*/, uint8_t* out,
                               Store /*store*/) {
  if (!has_input_) return;
  for (uint64_t done = 0; done < extent.bytes;) {
    uint64_t bytes = 0;
    const uint8_t* const piece = input_.at(extent.offset + done, extent.bytes - done, bytes);
    std::memcpy(out + done, piece, bytes);
    done += bytes;
  }
}

}  // namespace braid

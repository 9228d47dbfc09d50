// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "proto/types.h"
#include "proto/update.h"

namespace braid {

// What one update asks for, checked. All ranks must give the same; a NaN is in none.
struct UpdateStep {
  UpdateAction action = UpdateAction::Apply;
  Optimizer optimizer = Optimizer::Sgd;
  StateSlot slot = StateSlot::Weights;
  StateBits bits = StateBits::Rounded;
  uint32_t flags = 0;
  uint64_t count = 1;
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double second_momentum = 0;
  double epsilon = 0;
  double weight_decay = 0;

  bool operator==(const UpdateStep&) const = default;
  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  // Apply, Push and Estimate: its input is a gradient, and the owner takes an optimizer's step.
  bool takes_gradient() const {
    return action != UpdateAction::Load && action != UpdateAction::Fetch;
  }
  // Slots that the owner must keep for it: 1 (weights) to 3.
  uint32_t slots() const;
};

// `entry` comes from a trainer's arena and may be anything. `dtype`: of the tensor; `state_slots`:
// what it was registered with. INVALID_ARGUMENT names the field, its value, and what would be
// right.
Result<UpdateStep> parse_update(const proto::UpdateEntry& entry, DataType dtype,
                                uint32_t state_slots = kStateSlotCount);
proto::UpdateEntry to_entry(const UpdateStep& step);

// The hash of what is asked of several tensors, in this order; never 0.
uint64_t hash_of(std::span<const UpdateStep> steps);

// "adam (lr 0.001, betas 0.9 and 0.999, eps 1e-08, decoupled decay 0.01), update 7"; of Estimate
// "estimate of adam …"; of Load and Fetch "load of weights", "fetch of first moments (upper bits)".
std::string to_string(const UpdateStep& step);

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/contribution.h"
#include "engine/operation.h"
#include "engine/owner_step.h"
#include "update/shard_state.h"
#include "update/update_step.h"

namespace braid {

// The owner's step of a sharded optimizer (ZeRO stage 1: Rajbhandari et al., "ZeRO: Memory
// Optimizations Toward Training Trillion Parameter Models", SC 2020): of a chunk's sum it makes the
// new weights of the elements, which it keeps, and these go out. It belongs to one operation, whose
// owners are fixed. Estimate: the same weights go out, and the owner keeps what it has. Load: what
// the chunk holds goes into a slot. Fetch: the chunk gets what is in the slot.
class OptimizerStep final : public OwnerStep {
 public:
  // One tensor of the operation: as many elements, and what is to be done with them.
  struct Member {
    uint64_t elements = 0;
    UpdateStep update;
  };
  // `members` in the operation's order, of one action. `divisor`: sums are divided by it first.
  OptimizerStep(std::shared_ptr<ShardState> state, std::vector<Member> members, uint32_t divisor);

  StepOutcome apply(const Operation& operation, const Extent& extent, uint8_t* bytes,
                    StepEnd end) override;

 private:
  const std::shared_ptr<ShardState> state_;
  const std::vector<Member> members_;
  const uint32_t divisor_;
};

// The contribution to Load and Fetch, where nothing is added: the input of the node's first rank,
// or nothing.
class StateContribution final : public Contribution {
 public:
  StateContribution() = default;
  explicit StateContribution(OperationInput input) : input_(std::move(input)), has_input_(true) {}

  void reduce(const Extent& extent, const uint8_t* wire, uint8_t* out, Store store) override;
  void copy(const Extent& extent, uint8_t* out) override { reduce(extent, nullptr, out, {}); }
  const uint8_t* find(const Extent& /*extent*/) const override { return nullptr; }

 private:
  const OperationInput input_{};
  const bool has_input_ = false;
};

}  // namespace braid
